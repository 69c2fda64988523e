package registry

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// shipped loads the project's own registry.
func shipped(t testing.TB) *Registry {
	t.Helper()
	r, err := load(filepath.Join("..", "..", FileName))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The registry names each model that the project set out with, with these hashes.
func TestShipped(t *testing.T) {
	r := shipped(t)
	want := map[string]struct {
		architecture string
		size         int64
	}{
		"d1a395809f65a43a13ad119eb4e7acdef1ac6d68120f39902c8ab96e72794a59": {"qwen35moe", 36903140320},
		"3eca3b8f6d7baf218a7dd6bba5fb59a56ee25fe2d567b6f5f589b4f697eca51d": {"gemma4", 14439363584},
		"89617cc4d3a52e973ee8dea72c7df04285f582107385796ba903f81e540e4afa": {"lfm2moe", 13578190880},
		"24ff06f1ab74546a91f7c07bd725b3015896bbe9dd82ab0e5838be9ed06a6dcf": {"bailingmoe3", 77010144672},
		"1a6a8c91562b817fd8ec5b250453be696b0fc209ed8f2acdb6c13f4e17f7e188": {"bailingmoe3", 77010144672},
		"c998da3387341eb1c62b6f744c191fe24beeb6978eebd55dc846404bb9b1b160": {"lfm2moe", 8270176},
		"db7529573a16600c0342d8537a4e8717ae26f2c3d0d9174ca50122227361d509": {"qwen35moe", 10737600},
		"912748e0f19ef995141072d26c03154162c6c5734323328f119ecc5015baceec": {"gemma4", 8019392},
		"ebdb56337a6cfcf0841921e296d47f1472bbcee5846ae8d15def4495b54b7276": {"bailingmoe3", 10803232},
	}
	for sum, w := range want {
		f, ok := r.FileBySHA256(sum)
		if !ok || f.Architecture != w.architecture || f.Size() != w.size {
			t.Errorf("%s: have %+v, want %+v", sum, f, w)
		}
	}
	if _, err := r.PluginFor("lfm2moe"); err != nil {
		t.Error(err)
	}
}

// Nothing is called verified that no plugin here can run.
func TestShippedVerified(t *testing.T) {
	r := shipped(t)
	for _, f := range r.Files {
		if _, err := r.PluginFor(f.Architecture); err != nil && f.Verified != None {
			t.Errorf("file %s: have verified: %s, want none: %v", f.Name, f.Verified, err)
		}
	}
}

// The models in the tree are the ones that the registry describes.
func TestShippedFiles(t *testing.T) {
	for _, f := range shipped(t).Files {
		if f.Repo != "" {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			for _, p := range f.Parts {
				info, err := os.Stat(p.Path)
				if errors.Is(err, fs.ErrNotExist) && os.Getenv("CI") != "true" {
					t.Skipf("%s is not there", p.Path)
				}
				if err != nil {
					t.Fatal(err)
				}
				sum, err := hashFile(p.Path)
				if err != nil || sum != p.SHA256 || info.Size() != p.Size {
					t.Errorf("%s: have %d bytes, %s, %v, want %d, %s", p.File, info.Size(), sum, err, p.Size, p.SHA256)
				}
			}
		})
	}
}
