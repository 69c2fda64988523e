package sdk

import "github.com/sluicehost/sluice/sdk/rpc"

// Refusal is the error by which a plugin says that it can't run a file. Each
// reason names the key or tensor, what it is and what it should be.
type Refusal = rpc.Refusal
