package plugin

import (
	"crypto/sha256"
	"debug/elf"
	"debug/macho"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
)

// inspect says what is wrong with a binary, and what to do, before it runs.
func inspect(path string) (what, do string) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such file", "run `make build`, or fix the command in the registry"
	case err != nil:
		return err.Error(), "fix the command in the registry"
	case info.IsDir():
		return "is a folder", "name the binary in it as the command in the registry"
	case !info.Mode().IsRegular():
		return "is no regular file", "fix the command in the registry"
	case runtime.GOOS != "windows" && info.Mode()&0o111 == 0:
		return fmt.Sprintf("is not executable (mode %v)", info.Mode()), "run chmod +x on it, or `make build`"
	}
	f, err := os.Open(path)
	if err != nil {
		return "can't be read: " + err.Error(), "fix its permissions"
	}
	defer f.Close()
	head := make([]byte, 20)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return "can't be read: " + err.Error(), "fix its permissions"
	}
	return misfit(head[:n], runtime.GOOS, runtime.GOARCH)
}

// misfit says why a file that starts so can't run on a machine.
func misfit(head []byte, goos, goarch string) (what, do string) {
	format, arch := executable(head)
	want := "ELF"
	switch goos {
	case "darwin", "ios":
		want = "Mach-O"
	case "windows":
		want = "PE"
	}
	switch {
	case format == "script" && goos != "windows":
		return "", ""
	case format == "":
		return fmt.Sprintf("is not a program: it starts with %q", head), "run `make build`"
	case format != want || arch != "" && arch != goarch:
		return fmt.Sprintf("is a program for another machine: have %s, want %s %s", strings.TrimSpace(format+" "+arch), want, goarch),
			"build it here (make build)"
	}
	return "", ""
}

// executable reads format and GOARCH from a file's first 20 bytes. The
// architecture is empty where they don't tell.
func executable(head []byte) (format, arch string) {
	switch {
	case len(head) >= 2 && string(head[:2]) == "#!":
		return "script", ""
	case len(head) >= 2 && string(head[:2]) == "MZ":
		return "PE", ""
	case len(head) < 20:
		return "", ""
	case string(head[:4]) == elf.ELFMAG:
		order := binary.ByteOrder(binary.LittleEndian)
		if elf.Data(head[elf.EI_DATA]) == elf.ELFDATA2MSB {
			order = binary.BigEndian
		}
		return "ELF", elfArch(elf.Machine(order.Uint16(head[18:])))
	case binary.LittleEndian.Uint32(head) == macho.Magic64:
		return "Mach-O", machoArch(macho.Cpu(binary.LittleEndian.Uint32(head[4:])))
	case binary.BigEndian.Uint32(head) == macho.MagicFat:
		return "Mach-O", ""
	}
	return "", ""
}

func elfArch(m elf.Machine) string {
	switch m {
	case elf.EM_X86_64:
		return "amd64"
	case elf.EM_AARCH64:
		return "arm64"
	case elf.EM_386:
		return "386"
	case elf.EM_ARM:
		return "arm"
	case elf.EM_RISCV:
		return "riscv64"
	case elf.EM_LOONGARCH:
		return "loong64"
	case elf.EM_S390:
		return "s390x"
	case elf.EM_PPC64:
		return "" // ppc64 or ppc64le
	}
	return m.String()
}

func machoArch(c macho.Cpu) string {
	switch c {
	case macho.CpuAmd64:
		return "amd64"
	case macho.CpuArm64:
		return "arm64"
	}
	return c.String()
}

func parseSum(s string) ([]byte, error) {
	sum, err := hex.DecodeString(s)
	if err != nil {
		return nil, fmt.Errorf("checksum %.80q is not hex", s)
	}
	if len(sum) != sha256.Size {
		return nil, fmt.Errorf("checksum has %d bytes, want %d", len(sum), sha256.Size)
	}
	return sum, nil
}
