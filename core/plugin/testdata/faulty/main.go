// Command faulty is a plugin that fails in the way its own file name says; by
// any other name it starts well and serves testdata/fake.
package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	netrpc "net/rpc"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/sluicehost/sluice/core/plugin/testdata/fake"
	"github.com/sluicehost/sluice/sdk"
	"github.com/sluicehost/sluice/sdk/program"
	"github.com/sluicehost/sluice/sdk/rpc"
)

func main() {
	switch filepath.Base(os.Args[0]) {
	case "exit-early":
		fmt.Fprintln(os.Stderr, "can't find my head")
		os.Exit(7)
	case "exit-zero":
		os.Exit(0)
	case "segfault":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSEGV)
		time.Sleep(time.Hour)
	case "panic-early":
		panic("at once")
	case "garbage":
		fmt.Println("Hello, I am a plugin!\x1b[31m")
	case "garbage-long":
		fmt.Println(strings.Repeat("A", 1<<20))
	case "garbage-hang":
		fmt.Print("no line end")
		time.Sleep(time.Hour)
	case "silent":
		time.Sleep(time.Hour)
	case "closes-stdout":
		os.Stdout.Close()
		time.Sleep(time.Hour)
	case "core-9":
		shake("9|1|unix|%s|grpc|")
	case "protocol-0":
		shake("1|0|unix|%s|grpc|")
	case "protocol-2":
		serve(2, register{})
	case "netrpc":
		shake("1|1|unix|%s|netrpc|")
	case "certificate":
		shake("1|1|unix|%s|grpc|" + strings.Repeat("QUJD", 200))
	case "deaf":
		shake("1|1|unix|%s|grpc|")
	case "elsewhere":
		fmt.Println("1|1|tcp|192.0.2.1:9|grpc|")
		time.Sleep(time.Hour)
	case "escape":
		fmt.Println("1|1|unix|/run/other.sock|grpc|")
		time.Sleep(time.Hour)
	case "no-service":
		serve(1, register{})
	case "empty-replies":
		serve(1, register{answer{plan: &rpc.PlanReply{}, encode: &rpc.EncodeReply{}}})
	case "refuses-without-reason":
		serve(1, register{answer{plan: &rpc.PlanReply{Is: &rpc.PlanReply_Refusal{Refusal: &program.Refusal{}}}}})
	case "unlimited": // replies past the limit, which only the host holds to
		big := &program.Plan{Unused: []string{string(bytes.Repeat([]byte("x"), 70<<20))}}
		serve(1, register{answer{plan: &rpc.PlanReply{Is: &rpc.PlanReply_Plan{Plan: big}}}})
	case "flood":
		for range 10_000 {
			fmt.Fprintln(os.Stderr, "[ERROR] \x1b[2J"+strings.Repeat("more ", 20))
		}
	case "wild-version":
		serve(1, register{describe{reply: &rpc.DescribeReply{Name: fake.Name, Version: "1\x1b[2J", Architectures: []string{fake.Name}, Protocol: 1}}})
	case "long-version":
		serve(1, register{describe{reply: &rpc.DescribeReply{Name: fake.Name, Version: strings.Repeat("1", 1<<20), Protocol: 1}}})
	case "wild-architecture":
		serve(1, register{describe{reply: &rpc.DescribeReply{Name: fake.Name, Architectures: []string{"a\nb"}, Protocol: 1}}})
	case "many-architectures":
		serve(1, register{describe{reply: &rpc.DescribeReply{Name: fake.Name, Architectures: make([]string, 100_000), Protocol: 1}}})
	case "grandchild": // leaves a process in its group that holds its standard error
		leave(false)
	case "escaped-grandchild": // and one out of its group
		leave(true)
	case "sdk":
		sdk.Serve(fake.Architecture{})
		return
	case "another":
		rpc.Serve("another", fake.Plugin{CallsItself: "another"})
		return
	}
	rpc.Serve(fake.Name, fake.Plugin{})
}

// shake prints a handshake with the address of a socket that nobody answers.
func shake(format string) {
	path := filepath.Join(os.Getenv(goplugin.EnvUnixSocketDir), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		panic(err)
	}
	defer l.Close()
	fmt.Printf(format+"\n", path)
	time.Sleep(time.Hour)
}

// leave starts a process that outlives this one.
func leave(session bool) {
	cmd := exec.Command("/bin/sleep", "1000")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: session}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	fmt.Fprintln(os.Stderr, "grandchild", cmd.Process.Pid)
}

// serve is go-plugin's server without our limits and checks.
func serve(protocol int, r register) {
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig:  rpc.Handshake(),
		VersionedPlugins: map[int]goplugin.PluginSet{protocol: {"architecture": &r}},
		GRPCServer:       goplugin.DefaultGRPCServer,
	})
	os.Exit(0)
}

type register struct{ server rpc.ArchitectureServer }

func (r *register) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error {
	if r.server != nil {
		rpc.RegisterArchitectureServer(s, r.server)
	}
	return nil
}

func (r *register) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, nil
}

func (r *register) Server(*goplugin.MuxBroker) (any, error)                 { return nil, nil }
func (r *register) Client(*goplugin.MuxBroker, *netrpc.Client) (any, error) { return nil, nil }

// describe says of itself what it is told.
type describe struct {
	reply *rpc.DescribeReply
	rpc.UnimplementedArchitectureServer
}

func (d describe) Describe(context.Context, *rpc.DescribeRequest) (*rpc.DescribeReply, error) {
	return d.reply, nil
}

// answer gives the same replies to every call.
type answer struct {
	rpc.UnimplementedArchitectureServer
	plan   *rpc.PlanReply
	encode *rpc.EncodeReply
}

func (a answer) Describe(ctx context.Context, _ *rpc.DescribeRequest) (*rpc.DescribeReply, error) {
	return fake.Plugin{}.Describe(ctx)
}

func (a answer) Plan(context.Context, *rpc.PlanRequest) (*rpc.PlanReply, error) { return a.plan, nil }

func (a answer) Encode(context.Context, *rpc.EncodeRequest) (*rpc.EncodeReply, error) {
	return a.encode, nil
}
