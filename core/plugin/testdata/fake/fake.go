// Package fake is a plugin whose behaviour the request chooses, for the tests
// of core/plugin: in a process by way of testdata/faulty, and in this one.
package fake

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"syscall"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/sluicehost/sluice/sdk"
	"github.com/sluicehost/sluice/sdk/program"
	"github.com/sluicehost/sluice/sdk/rpc"
)

// Name is what the plugin calls itself and its one architecture.
const Name = "faulty"

// Plugin does what general.architecture says; see act. Replies have at least
// as many bytes as the header has vocab.
type Plugin struct{ CallsItself string }

// Header asks for a behaviour and a reply of at least size bytes.
func Header(behaviour string, size uint64) *program.Header {
	return &program.Header{Vocab: size, Metadata: []*program.KeyValue{{
		Key:   "general.architecture",
		Value: &program.Value{Is: &program.Value_String_{String_: behaviour}},
	}}}
}

// Describe gives the name.
func (p Plugin) Describe(context.Context) (*rpc.DescribeReply, error) {
	name := Name
	if p.CallsItself != "" {
		name = p.CallsItself
	}
	return &rpc.DescribeReply{Name: name, Version: "0.0.1", Architectures: []string{name}, Protocol: 1}, nil
}

// Plan returns a plan of the size asked for.
func (p Plugin) Plan(_ context.Context, h *program.Header) (*program.Plan, error) {
	if done, err := act(h); done {
		return nil, err
	}
	plan := &program.Plan{Model: &program.Model{Architecture: Name, Layers: 1}}
	size := uint64(0)
	long := strings.Repeat("x", max(1000, int(h.GetVocab()/64)))
	for i := 0; size < h.GetVocab(); i++ {
		w := &program.Weight{Name: fmt.Sprint("blk.", i, ".attn_q"), Tensors: []string{long}}
		size += uint64(proto.Size(w))
		plan.Weights = append(plan.Weights, w)
	}
	return plan, nil
}

// Encode returns a program shaped like a real one: three quarters WGSL, one quarter dispatches.
func (p Plugin) Encode(_ context.Context, req *program.EncodeRequest) (*program.Program, error) {
	h := req.GetHeader()
	if done, err := act(h); done {
		return nil, err
	}
	prog := &program.Program{Version: 1}
	wgsl := strings.Repeat("let x = 1u; ", max(1, int(h.GetVocab()/12/40)))
	for i := range 30 {
		prog.Kernels = append(prog.Kernels, &program.Kernel{
			Name: fmt.Sprint("k", i), Wgsl: wgsl,
			Params: map[string]uint32{"N": 64, "M": uint32(i), "K": 3}, Types: map[string]uint32{"w": 2, "v": 12},
		})
	}
	size := uint64(proto.Size(prog))
	for i := uint32(0); size < h.GetVocab(); i++ {
		d := &program.Dispatch{Kernel: i % 30, Constants: make([]byte, 48), Label: fmt.Sprintf("blk.%d.attn_qkv", i)}
		for b := range uint32(6) {
			d.Bindings = append(d.Bindings, &program.Binding{At: &program.Binding_Buffer{Buffer: b}})
		}
		d.Grid = []*program.Term{{Mul: 4, Div: 2, N: program.Var_T}, {}, {}}
		s := &program.Section{Layer: i, Variants: []*program.Variant{{Min: 1, Dispatches: []*program.Dispatch{d}}}}
		size += uint64(proto.Size(s)) + 4
		prog.Sections = append(prog.Sections, s)
	}
	return prog, nil
}

// Architecture is what an author writes, as far as a refusal or a panic.
type Architecture struct{}

// Describe gives the name, and no architectures: then it is the name.
func (Architecture) Describe() sdk.Description {
	return sdk.Description{Name: Name, Version: "0.0.2"}
}

// Configure refuses, or panics where the vocab is 13.
func (Architecture) Configure(m *sdk.Metadata) (sdk.Model, error) {
	if m.Vocab() == 13 {
		panic("thirteen")
	}
	return nil, errors.New("key faulty.block_count: have 0, want more")
}

// act does what the header asks for instead of an answer.
func act(h *program.Header) (done bool, err error) {
	behaviour := ""
	for _, kv := range h.GetMetadata() {
		behaviour = kv.GetValue().GetString_()
	}
	switch behaviour {
	case "nil":
		return true, nil
	case "refuse":
		return true, &rpc.Refusal{Reasons: []string{"key fake.a: have 1, want 2", "tensor t: missing"}}
	case "error":
		return true, errors.New("no idea")
	case "panic":
		var none []int
		return true, fmt.Errorf("unreachable %d", none[len(h.GetMetadata())])
	case "crash":
		go func() { panic("boom in a goroutine") }()
		time.Sleep(time.Minute)
	case "exit":
		fmt.Fprintln(os.Stderr, "printed by the author") // by way of go-plugin's own stream
		log.Print("[ERROR] logged by the author")
		os.Exit(3)
	case "sigkill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(time.Minute)
	case "freeze": // all threads, as a debugger or a full machine would
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		time.Sleep(time.Hour)
	case "hang":
		time.Sleep(time.Hour)
	case "spin":
		for i := 0; ; i++ {
			spun = i
		}
	case "utf8":
		return true, &rpc.Refusal{Reasons: []string{"bad \xff text"}}
	case "environment":
		dir, _ := os.Getwd()
		return true, &rpc.Refusal{Reasons: append(os.Environ(), "cwd="+dir)}
	case "log":
		log.Print("[WARN] a warning by the author")
		log.Print("[DEBUG] too quiet for the host")
		fmt.Println("printed to stdout by the author")
	}
	return false, nil
}

var spun int
