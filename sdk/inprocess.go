package sdk

import (
	"os"

	"github.com/hashicorp/go-hclog"

	"github.com/sluicehost/sluice/sdk/rpc"
)

// InProcess is the architecture as a host sees it, without a process: every
// request and reply is marshalled, with the message limit of the real thing.
// For tests; the stack of a panic goes to standard error.
func InProcess(a Architecture) rpc.Plugin {
	name := a.Describe().Name
	log := hclog.New(&hclog.LoggerOptions{Name: name, Level: hclog.Error, Output: os.Stderr})
	return rpc.InProcess(name, served{a}, log)
}
