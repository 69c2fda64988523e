// Package rpc carries the contract between the host and a plugin: the handshake,
// the message limit, and Plugin, the three calls as Go functions, spoken over
// gRPC or inside one process. It knows no architecture and starts no process:
// core/plugin does that, and an author calls sdk.Serve.
//
// The main starting point is the Plugin interface.
package rpc

import (
	"context"
	"os"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/sluicehost/sluice/sdk/program"
)

// MessageLimit is the largest request or reply in bytes, on both ends.
const MessageLimit = 64 << 20

const (
	// EnvLog is the environment variable in which the host tells a plugin the
	// lowest level that it wants to see in the log.
	EnvLog = "SLUICE_PLUGIN_LOG"
	// EnvStdin is set to "host" where the plugin's standard input stays open
	// for as long as the host lives, so that its end means that the host died.
	EnvStdin = "SLUICE_PLUGIN_STDIN"

	service = "architecture" // the key in go-plugin's plugin set
)

// Plugin is what the host asks of an architecture while a model loads. Plan
// and Encode return a *Refusal where the file can't be run and a *Fault where
// the call itself failed.
type Plugin interface {
	Describe(ctx context.Context) (*DescribeReply, error)
	Plan(ctx context.Context, h *program.Header) (*program.Plan, error)
	Encode(ctx context.Context, req *program.EncodeRequest) (*program.Program, error)
}

// Protocol is the newest version of the contract.
const Protocol = 1

// Protocols lists the versions of the contract that this package speaks.
func Protocols() []int { return []int{Protocol} }

// Handshake is the cookie by which a plugin knows that a host started it. It
// keeps a user from running a plugin by hand; it is no secret.
func Handshake() plugin.HandshakeConfig {
	return plugin.HandshakeConfig{
		MagicCookieKey:   "SLUICE_PLUGIN",
		MagicCookieValue: "a host is on the other end",
	}
}

// Launched says whether a host started this process.
func Launched() bool {
	h := Handshake()
	return os.Getenv(h.MagicCookieKey) == h.MagicCookieValue
}

// DialOptions are what a host dials a plugin with: the message limit.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithDefaultCallOptions(
		grpc.MaxCallRecvMsgSize(MessageLimit), grpc.MaxCallSendMsgSize(MessageLimit))}
}

// Clients is the go-plugin set of a host that speaks the given protocols.
func Clients(protocols []int) map[int]plugin.PluginSet { return sets(protocols, nil) }

// Dispense is the Plugin at the other end of a connection made with Clients.
func Dispense(c plugin.ClientProtocol) (Plugin, error) {
	raw, err := c.Dispense(service)
	if err != nil {
		return nil, err
	}
	return NewClient(raw.(ArchitectureClient)), nil
}

func sets(protocols []int, s ArchitectureServer) map[int]plugin.PluginSet {
	m := map[int]plugin.PluginSet{}
	for _, v := range protocols {
		m[v] = plugin.PluginSet{service: &glue{server: s}}
	}
	return m
}

// glue registers the service with go-plugin.
type glue struct {
	plugin.NetRPCUnsupportedPlugin
	server ArchitectureServer
}

func (g *glue) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	RegisterArchitectureServer(s, g.server)
	return nil
}

func (g *glue) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return NewArchitectureClient(c), nil
}

// InProcess is p spoken to as if over gRPC: every request and reply is
// marshalled, so no pointer passes. log gets the stack of a panic of p's.
func InProcess(name string, p Plugin, log hclog.Logger) Plugin {
	return NewClient(&loopback{NewServer(name, p, log)})
}
