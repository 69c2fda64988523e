package registry

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Each fault is an error with the line it is on.
func TestFaults(t *testing.T) {
	all := onePlugin + oneFile // lines 1-6 and 7-13
	swap := func(old, text string) string {
		if !strings.Contains(all, old) {
			t.Fatalf("BUG: %q is not there to be replaced", old)
		}
		return strings.Replace(all, old, text, 1)
	}
	second := func(name, arch string) string {
		return onePlugin + fmt.Sprintf("  - {name: %s, version: 1, architectures: [%s], protocol: 1, command: b}\n", name, arch)
	}
	cases := map[string]struct{ text, want string }{
		"empty":                   {"", "is empty"},
		"only a comment":          {"# nothing\n", "is empty"},
		"null":                    {"---\nnull\n", ":2: registry: have nothing, want a mapping"},
		"scalar":                  {"hello", `:1: registry: have "hello", want a mapping`},
		"list":                    {"- a", ":1: registry: have a list, want a mapping"},
		"broken yaml":             {"plugins: [", "yaml: line 1"},
		"tab":                     {"plugins:\n\t- a", "yaml: line 2"},
		"not utf-8":               {"plugins: \xff\xfe", "yaml:"},
		"second document":         {all + "---\nplugins: []\n", ":14: have a second YAML document"},
		"second is broken":        {all + "---\n[", "yaml:"},
		"no plugins":              {"files: []", ":1: registry: key plugins is missing"},
		"unknown top key":         {all + "models: []\n", `:14: registry: have unknown key "models", want one of files, plugins`},
		"unknown plugin key":      {swap("version: 1.0", "versoin: 1.0"), `:3: plugin alpha: have unknown key "versoin"`},
		"so the right is missing": {swap("version: 1.0", "versoin: 1.0"), ":2: plugin alpha: key version is missing"},
		"unknown file key":        {swap("size: 10", "size: 10\n    bytes: 10"), `:12: file m: have unknown key "bytes"`},
		"key twice":               {swap("version: 1.0", "version: 1.0\n    version: 2"), `:4: plugin alpha: have key "version" twice`},
		"key is a list":           {swap("version: 1.0", "[a]: 1.0"), ":3: plugin alpha: have a list as a key"},
		"merge key":               {swap("version: 1.0", "<<: {version: 1}"), `:3: plugin alpha: have unknown key "<<"`},
		"alias":                   {swap("[one, two]", "[&a one, *a]"), ":4: plugin alpha: architectures: have an alias, want text"},
		"plugins is a mapping":    {"plugins: {}", ":1: plugins: have a mapping, want a list"},
		"plugin is a word":        {"plugins: [x]", `:1: plugin without a name: have "x", want a mapping`},
		"name twice":              {second("alpha", "z"), ":7: plugin alpha: is on line 2 already"},
		"architecture twice":      {second("beta", "two"), ":7: architecture two: is on line 4 already"},
		"architecture repeated":   {swap("[one, two]", "[one, one]"), ":4: architecture one: is on line 4 already"},
		"no architectures":        {swap("[one, two]", "[]"), ":4: plugin alpha: architectures: have none"},
		"null architectures":      {swap("[one, two]", ""), ":4: plugin alpha: architectures: have none"},
		"architecture of spaces":  {swap("[one, two]", "[a b]"), `:4: plugin alpha: architectures: have "a b"`},
		"name with slash":         {swap("alpha", "a/b"), `:2: plugin without a name: name: have "a/b"`},
		"name in capitals":        {swap("alpha", "Alpha"), `have "Alpha", want 1 to 64`},
		"name starts with dot":    {swap("alpha", "..a"), `have "..a", want 1 to 64`},
		"long name":               {swap("alpha", strings.Repeat("a", 1000)), strings.Repeat("a", 80) + `"…, want 1 to 64`},
		"name is a list":          {swap("name: alpha", "name: [alpha]"), "name: have a list, want text"},
		"name is null":            {swap("name: alpha", "name:"), "name: have nothing, want text"},
		"name is empty":           {swap("name: alpha", `name: ""`), `name: have "", want 1 to 64`},
		"tagged text":             {swap("version: 1.0", "version: !!binary aGk="), ":3: plugin alpha: version: have the tag"},
		"description with escape": {swap("version: 1.0", `version: 1.0`+"\n    "+`description: "\e[31m"`), `:4: plugin alpha: description: have "\x1b[31m"`},
		"protocol 0":              {swap("protocol: 1", "protocol: 0"), `:5: plugin alpha: protocol: have "0", want versions from 1`},
		"protocol negative":       {swap("protocol: 1", "protocol: -1"), `:5: plugin alpha: protocol: have "-1"`},
		"protocol huge":           {swap("protocol: 1", "protocol: 99999999999999999999"), ":5: plugin alpha: protocol: have"},
		"protocol fraction":       {swap("protocol: 1", "protocol: 1.5"), ":5: plugin alpha: protocol: have"},
		"protocol hex":            {swap("protocol: 1", "protocol: 0x1"), ":5: plugin alpha: protocol: have"},
		"protocol backwards":      {swap("protocol: 1", "protocol: 3-1"), ":5: plugin alpha: protocol: have"},
		"protocol wide":           {swap("protocol: 1", "protocol: 1-65"), ":5: plugin alpha: protocol: have"},
		"protocol date":           {swap("protocol: 1", "protocol: 2026-01-02"), ":5: plugin alpha: protocol: have"},
		"protocol word":           {swap("protocol: 1", "protocol: [one]"), `:5: plugin alpha: protocol: have "one", want a whole number`},
		"protocol none":           {swap("protocol: 1", "protocol: []"), ":5: plugin alpha: protocol: have a list"},
		"protocol mapping":        {swap("protocol: 1", "protocol: {min: 1}"), ":5: plugin alpha: protocol: have a mapping"},
		"command upwards":         {swap("bin/alpha", "../alpha"), `:6: plugin alpha: command: have "../alpha", want a relative path`},
		"command inner upwards":   {swap("bin/alpha", "bin/../../alpha"), ":6: plugin alpha: command: have"},
		"command absolute":        {swap("bin/alpha", "/bin/sh"), `:6: plugin alpha: command: have "/bin/sh"`},
		"command of windows":      {swap("bin/alpha", `bin\alpha`), ":6: plugin alpha: command: have"},
		"command with drive":      {swap("bin/alpha", `"c:/alpha"`), ":6: plugin alpha: command: have"},
		"command is the folder":   {swap("bin/alpha", "."), ":6: plugin alpha: command: have"},
		"size zero":               {swap("size: 10", "size: 0"), ":11: file m: size: have 0 bytes"},
		"size negative":           {swap("size: 10", "size: -1"), ":11: file m: size: have -1 bytes"},
		"size overflows":          {swap("size: 10", "size: 9223372036854775807"), ":11: file m: size: have"},
		"size with unit":          {swap("size: 10", "size: 10 GB"), `:11: file m: size: have "10 GB", want a whole number`},
		"size missing":            {swap("    size: 10\n", ""), ":8: file m: key size is missing"},
		"hash short":              {swap(sumA, sumA[1:]), ":12: file m: sha256: have"},
		"hash in capitals":        {swap(sumA, strings.ToUpper(sumA)), "want 64 lower-case hex digits"},
		"hash twice":              {all + strings.ReplaceAll(oneFile[len("files:\n"):], "name: m", "name: n"), "sha256 " + sumA + ": is on line 8 already"},
		"file name twice":         {all + strings.ReplaceAll(oneFile[len("files:\n"):], sumA, sumB), ":14: file m: is on line 8 already"},
		"file upwards":            {swap("a/m.gguf", "../m.gguf"), `:10: file m: file: have "../m.gguf"`},
		"unknown verified":        {swap("golden", "yes"), `:13: file m: verified: have "yes", want one of none, golden, synthetic, real`},
		"verified missing":        {swap("    verified: golden\n", ""), ":8: file m: key verified is missing"},
		"repo without revision":   {swap("file: a", "repo: o/n\n    file: a"), ":8: file m: key revision is missing"},
		"revision without repo":   {swap("file: a", "revision: "+sumA[:40]+"\n    file: a"), ":8: file m: key repo is missing"},
		"revision is a branch":    {swap("file: a", "repo: o/n\n    revision: main\n    file: a"), ":11: file m: revision: have"},
		"repo is a URL":           {swap("file: a", "repo: https://x/y\n    file: a"), ":10: file m: repo: have"},
		"parts beside file":       {all + "    parts: [{file: b, size: 1, sha256: " + sumB + "}]\n", ":8: file m: have parts beside file"},
		"no parts":                {swap("    file: a/m.gguf\n    size: 10\n    sha256: "+sumA, "    parts: []"), ":10: file m: parts: have none"},
		"part incomplete":         {swap("    file: a/m.gguf\n    size: 10\n    sha256: "+sumA, "    parts: [{file: b}]"), ":10: file m: part: key size is missing"},
		"part with a name":        {swap("    file: a/m.gguf\n    size: 10\n    sha256: "+sumA, "    parts: [{name: b}]"), `:10: file m: part: have unknown key "name", want one of file, sha256, size`},
	}
	if _, err := parse("/r.yaml", []byte(all)); err != nil {
		t.Fatalf("the registry without a fault: %v", err)
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := parse("/r.yaml", []byte(c.text))
			if err == nil {
				t.Fatalf("have no error, want %q", c.want)
			}
			if r != nil || !strings.HasPrefix(err.Error(), "registry: /r.yaml:") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("have %v\nwant %q", err, c.want)
			}
		})
	}
}

// Files made to cost much more than their size stay cheap.
func TestBombs(t *testing.T) {
	var aliases strings.Builder // 9 levels of 10: 1e9 items when expanded
	aliases.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&aliases, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	aliases.WriteString("plugins: *a8\n")
	var wide strings.Builder // a decoder into structs compares all pairs of keys
	for i := 0; wide.Len() < maxBytes-16; i++ {
		fmt.Fprintf(&wide, "%x: 1\n", i)
	}
	for name, text := range map[string]string{
		"aliases":     aliases.String(),
		"cycle":       "plugins: &a [*a]",
		"wide":        wide.String(),
		"same keys":   strings.Repeat("a: 1\n", maxBytes/5),
		"deep lists":  "plugins: " + strings.Repeat("[", maxBytes/2),
		"deep maps":   "plugins: " + strings.Repeat("{a: ", maxBytes/4),
		"many faults": "plugins: [" + strings.Repeat("x,", maxBytes/2-16) + "]",
		"long text":   "plugins: " + strings.Repeat("x", maxBytes-16),
		"indents":     strings.Repeat("- ", maxBytes/2),
		"questions":   strings.Repeat("? ", maxBytes/2),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := parse("/r.yaml", []byte(text))
			if err == nil {
				t.Fatal("have no error")
			}
			if n := len(err.Error()); n > 4096 {
				t.Errorf("have an error of %d bytes, want at most 4096", n)
			}
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("took %s, want well under 20 s", took)
			} else {
				t.Logf("%d bytes, %s", len(text), took.Round(time.Millisecond))
			}
		})
	}
}
