package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sluicehost/sluice/core/gguf/gguftest"
	"github.com/sluicehost/sluice/sdk/ggml"
)

// TestBadModels: each way in which a model may be wrong, with its message.
func TestBadModels(t *testing.T) {
	t.Parallel()
	needGPU(t)
	whole, err := os.ReadFile(tiny)
	if err != nil {
		t.Fatal(err)
	}
	bytesOf := func(name string, data []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	edit := func(change func(*gguftest.Model)) string { return gguftest.Edit(t, tiny, change) }
	for name, c := range map[string]struct {
		model string
		wants []string
	}{
		"no file":         {"/no/such.gguf", []string{"/no/such.gguf: no such file or directory"}},
		"a folder":        {t.TempDir(), []string{"not a store"}},
		"not a GGUF":      {bytesOf("text", []byte("once upon a time there was a file that was no model")), []string{"this is not a GGUF model"}},
		"empty":           {bytesOf("empty", nil), []string{"empty"}},
		"header cut off":  {bytesOf("header.gguf", whole[:5000]), []string{"header.gguf"}},
		"data cut off":    {bytesOf("data.gguf", whole[:len(whole)-1000]), []string{"data.gguf", "tensor "}},
		"no architecture": {edit(func(m *gguftest.Model) { m.Drop("general.architecture") }), []string{"key general.architecture is missing"}},
		"unknown architecture": {edit(func(m *gguftest.Model) { m.Set("general.architecture", "nosuch") }),
			[]string{"no plugin for architecture \"nosuch\": it has", "registry.yaml"}},
		"unsupported type": {edit(func(m *gguftest.Model) { m.Tensor("blk.0.ffn_gate.weight").Reshape(ggml.IQ1_S, 256, 768) }),
			[]string{"blk.0.ffn_gate.weight", "IQ1_S"}},
		"unsupported expert type": {edit(func(m *gguftest.Model) { m.Tensor("blk.3.ffn_gate_exps.weight").Reshape(ggml.IQ1_S, 256, 64, 32) }),
			[]string{"blk.3.ffn_gate_exps.weight", "IQ1_S"}},
		"missing tensor":        {edit(func(m *gguftest.Model) { m.DropTensor("blk.3.ffn_gate_inp.weight") }), []string{"blk.3.ffn_gate_inp.weight"}},
		"missing expert tensor": {edit(func(m *gguftest.Model) { m.DropTensor("blk.4.ffn_down_exps.weight") }), []string{"blk.4.ffn_down_exps.weight"}},
		"wrong shape":           {edit(func(m *gguftest.Model) { m.Tensor("blk.2.attn_q_norm.weight").Reshape(ggml.F32, 32) }), []string{"blk.2.attn_q_norm.weight", "32"}},
		"wrong matrix shape":    {edit(func(m *gguftest.Model) { m.Tensor("blk.5.attn_output.weight").Reshape(ggml.Q4_0, 512, 128) }), []string{"blk.5.attn_output.weight", "512"}},
		"missing key":           {edit(func(m *gguftest.Model) { m.Drop("lfm2moe.shortconv.l_cache") }), []string{"lfm2moe.shortconv.l_cache"}},
		"mistyped key":          {edit(func(m *gguftest.Model) { m.Set("lfm2moe.block_count", "eight") }), []string{"lfm2moe.block_count"}},
		"no vocabulary":         {edit(func(m *gguftest.Model) { m.Drop("tokenizer.ggml.tokens") }), []string{"tokenizer.ggml.tokens"}},
		"unknown tokenizer":     {edit(func(m *gguftest.Model) { m.Set("tokenizer.ggml.model", "nosuch") }), []string{"tokenizer.ggml.model", "nosuch"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runHost(t, "", "run", "--raw", "--prompt", "x", "--model", c.model).fails(t, append(c.wants, "host: ")...)
		})
	}
}

// TestNoGPU: what the host says where there is none.
func TestNoGPU(t *testing.T) {
	t.Parallel()
	cmd := command(t, "run", "--raw", "--prompt", "x", "--model", tiny)
	cmd.Env = append(cmd.Env, noDriver...)
	finish(t, cmd, "").fails(t, "no GPU found")

	folder := t.TempDir() // where the dynamic linker looks first, and finds a library that can't be loaded
	if err := os.WriteFile(filepath.Join(folder, "libvulkan.so.1"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd = command(t, "run", "--raw", "--prompt", "x", "--model", tiny)
	cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+folder)
	finish(t, cmd, "").fails(t, "no Vulkan loader", "libvulkan1")

	needGPU(t)
	runHost(t, "", "run", "--raw", "--prompt", "x", "--model", tiny, "--adapter", "no such adapter").fails(t, "no GPU found", "no such adapter")
}

// TestNoRegistry: the error says where the host looked.
func TestNoRegistry(t *testing.T) {
	t.Parallel()
	bin := filepath.Join(t.TempDir(), "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	alone := filepath.Join(bin, "host")
	if err := os.Link(filepath.Join(install(t), "bin", "host"), alone); err != nil {
		t.Fatal(err)
	}
	cmd := command(t, "run", "--raw", "--prompt", "x", "--model", tiny)
	cmd.Path = alone
	finish(t, cmd, "").fails(t, "no registry.yaml found: looked at:", "beside the binary: "+bin, "user config folder: ")
}

// TestOutputFull: what can't be written is an error.
func TestOutputFull(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("no /dev/full on this system: %v", err)
	}
	defer full.Close()
	for _, args := range [][]string{{"inspect", tiny}, {"version"}, {"plugin", "plan", tiny}} {
		cmd := command(t, args...)
		cmd.Stdout = full
		if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 1 {
			t.Errorf("%v: have %v, want exit code 1", args, err)
		}
	}
}
