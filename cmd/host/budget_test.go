package main

import (
	"testing"
	"testing/fstest"
)

func TestBudget(t *testing.T) {
	for text, want := range map[string]budget{
		"auto": {auto: true}, "max": {max: true}, "1": {bytes: 1}, "512MB": {bytes: 512e6}, "512mb": {bytes: 512e6}, "4GB": {bytes: 4e9},
		"4G": {bytes: 4e9}, "1.5GiB": {bytes: 3 << 29}, "1.5 GiB": {bytes: 3 << 29}, "100000": {bytes: 100000}, "1EiB": {bytes: 1 << 60},
	} {
		var b budget
		if err := b.UnmarshalText([]byte(text)); err != nil || b != want {
			t.Errorf("%q: have %+v, %v, want %+v", text, b, err, want)
		}
	}
	for _, text := range []string{"", "0", "0GB", "-1", "-1GB", "GB", "4XB", "4 GB GB", "1e9", "all", "AUTO", "nan", "inf", "16EB", "2EiB", "99999999999999999999"} {
		var b budget
		if err := b.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: have %+v, want an error", text, b)
		}
	}
}

func TestAvailableMemory(t *testing.T) {
	for name, c := range map[string]struct {
		meminfo string
		want    uint64
	}{
		"linux":    {"MemTotal:       24510212 kB\nMemFree:         1 kB\nMemAvailable:   23307424 kB\n", 23307424 << 10},
		"old":      {"MemTotal:       24510212 kB\nMemFree:         1 kB\n", 0},
		"nonsense": {"MemAvailable:   lots kB\n", 0},
		"empty":    {"", 0},
	} {
		if got := availableMemory(fstest.MapFS{"meminfo": {Data: []byte(c.meminfo)}}); got != c.want {
			t.Errorf("%s: have %d, want %d", name, got, c.want)
		}
	}
	if got := availableMemory(fstest.MapFS{}); got != 0 {
		t.Errorf("no file: have %d, want 0", got)
	}
}

func TestNvidiaFree(t *testing.T) {
	const report = "NVIDIA H200, 143000\nNVIDIA H200, 141000\nNVIDIA A2, 15000\nNVIDIA Odd, [N/A]\n"
	for name, want := range map[string]uint64{"NVIDIA H200": 141000 << 20, "NVIDIA A2": 15000 << 20, "NVIDIA Odd": 0, "NVIDIA": 0, "": 0} {
		if got := nvidiaFree(report, name); got != want {
			t.Errorf("%q: have %d, want %d", name, got, want)
		}
	}
	if got := nvidiaFree("", "NVIDIA H200"); got != 0 {
		t.Errorf("no report: have %d, want 0", got)
	}
}

func TestAMDFree(t *testing.T) {
	card := func(fs fstest.MapFS, name, total, used string) {
		fs[name+"/device/mem_info_vram_total"] = &fstest.MapFile{Data: []byte(total + "\n")}
		fs[name+"/device/mem_info_vram_used"] = &fstest.MapFile{Data: []byte(used + "\n")}
	}
	fs := fstest.MapFS{"card2/device/vendor": {Data: []byte("0x8086\n")}}
	if got := amdFree(fs); got != 0 {
		t.Errorf("no card: have %d, want 0", got)
	}
	card(fs, "card0", "536870912", "100") // a CPU's graphics
	card(fs, "card1", "17163091968", "1000000000")
	if got := amdFree(fs); got != 16163091968 {
		t.Errorf("two unlike cards: have %d, want the larger's 16163091968", got)
	}
	card(fs, "card3", "17163091968", "5000000000")
	if got := amdFree(fs); got != 12163091968 {
		t.Errorf("two like cards: have %d, want the fuller's 12163091968", got)
	}
	card(fs, "card4", "20000000000", "30000000000")
	if got := amdFree(fs); got != 0 {
		t.Errorf("more used than there is: have %d, want 0", got)
	}
}
