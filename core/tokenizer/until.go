package tokenizer

import "context"

// until ends work that takes long: of a text of 64 MiB it may be many seconds, also of one that is a single word.
type until struct {
	ctx  context.Context
	left int // calls of over until the context is looked at
	err  error
}

// looks is how many small steps there are between looks at the context: some 0.1 ms of them.
const looks = 4096

// over says whether the context has ended. It is called once each small step.
func (u *until) over() bool {
	if u.left--; u.left < 0 && u.err == nil {
		u.left, u.err = looks, u.ctx.Err()
	}
	return u.err != nil
}
