package rpc

import (
	"io"
	"log"
	"os"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

// Serve answers the host that started this process until the host is gone. It
// owns the process: standard output carries the handshake, standard error
// JSON lines of hclog, and standard input ends with the host.
func Serve(name string, p Plugin) {
	logger := hclog.New(&hclog.LoggerOptions{
		Level:      hclog.LevelFromString(os.Getenv(EnvLog)),
		Output:     os.Stderr, // the real one: go-plugin replaces the variable
		JSONFormat: true,
	})
	log.SetFlags(0)
	log.SetOutput(logger.StandardWriter(&hclog.StandardLoggerOptions{InferLevels: true}))
	if os.Getenv(EnvStdin) == "host" {
		go exitWithHost(os.Stdin)
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  Handshake(),
		VersionedPlugins: sets(Protocols(), NewServer(name, p, logger)),
		GRPCServer:       limitedServer,
		Logger:           logger,
	})
}

// exitWithHost ends the process when its host is gone, however that died:
// go-plugin itself leaves orphans.
func exitWithHost(stdin io.Reader) {
	_, _ = io.Copy(io.Discard, stdin)
	os.Exit(0)
}

// limitedServer stands in for plugin.DefaultGRPCServer, which takes no request
// over 4 MiB.
func limitedServer(opts []grpc.ServerOption) *grpc.Server {
	return grpc.NewServer(append(opts, grpc.MaxRecvMsgSize(MessageLimit), grpc.MaxSendMsgSize(MessageLimit))...)
}
