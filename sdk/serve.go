package sdk

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/sluicehost/sluice/sdk/program"
	"github.com/sluicehost/sluice/sdk/rpc"
)

// Serve is the main function of a plugin: it answers the host that started
// this process until the host is gone. Run by hand, the binary says what it is
// and exits with code 1.
//
// Print nothing to standard output before Serve, not even from an init
// function: the host reads the handshake there and refuses the plugin
// otherwise. Once Serve runs, the standard log package writes to the host's
// log under the plugin's name; a prefix [DEBUG], [WARN] or [ERROR] sets the
// level. What is printed directly appears there at debug level. The
// environment is nearly empty and the working folder is the root: a plugin
// reads no files.
func Serve(a Architecture) {
	d := a.Describe()
	if !rpc.Launched() {
		fmt.Fprint(os.Stderr, aboutPlugin(d, os.Args[0]))
		os.Exit(1)
	}
	rpc.Serve(d.Name, served{a})
}

// aboutPlugin is what a user reads who runs a plugin by hand.
func aboutPlugin(d Description, binary string) string {
	return fmt.Sprintf(`This is a plugin of the Sluice host: %s %s, which runs GGUF files of general.architecture %s.
It is not run by hand. The host starts it while it loads a model:
  - with an entry in registry.yaml:   host run --model FILE
  - as a build of your own, unsigned: host run --model FILE --plugin-dev %s=%s
`, d.Name, d.Version, strings.Join(d.architectures(), ", "), d.Name, binary)
}

// served is an Architecture as the host asks it.
type served struct{ a Architecture }

func (s served) Describe(context.Context) (*rpc.DescribeReply, error) {
	d := s.a.Describe()
	return &rpc.DescribeReply{
		Name:          d.Name,
		Version:       d.Version,
		Architectures: d.architectures(),
		Protocol:      Protocol,
	}, nil
}

func (s served) Plan(_ context.Context, h *program.Header) (*program.Plan, error) {
	return Plan(s.a, h)
}

func (s served) Encode(_ context.Context, req *program.EncodeRequest) (*program.Program, error) {
	return Encode(s.a, req)
}
