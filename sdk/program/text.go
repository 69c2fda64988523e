package program

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// Text writes a plan and its program in a form to review and to hold in golden
// files: the model's facts, weights, records, ropes, buffers and kernels, then
// for each section and variant a line per dispatch,
//
//	label  kernel  what it reads -> what it writes  grid  constants
//
// Session memory that a dispatch updates stands among what it writes. placed,
// records and prog may be nil for a plan alone. The text depends on nothing
// but the arguments; broken ones give broken text, never a panic.
func Text(w io.Writer, plan *Plan, placed []*Placed, records []*PlacedRecord, prog *Program) error {
	t := &text{w: bufio.NewWriter(w), plan: plan, prog: prog, decls: make([]Decl, len(prog.GetKernels()))}
	for i, k := range prog.GetKernels() {
		t.decls[i], _ = ParseWGSL(k.GetWgsl()) // without declarations, constants are shown as bytes
	}
	t.model()
	t.weights(placed)
	t.records(records)
	t.ropes()
	if prog != nil {
		t.buffers()
		t.kernels()
		for _, s := range prog.GetSections() {
			t.section(s)
		}
	}
	return t.w.Flush()
}

type text struct {
	w     *bufio.Writer
	plan  *Plan
	prog  *Program
	decls []Decl
}

func (t *text) printf(format string, args ...any) { fmt.Fprintf(t.w, format, args...) } // Flush reports the error

// table writes rows with their first columns aligned; the last column is free.
func (t *text) table(indent string, rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			cell = visible(cell)
			row[i] = cell
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	for _, row := range rows {
		line := indent
		for i, cell := range row {
			line += cell + strings.Repeat(" ", widths[i]-len([]rune(cell))+2)
		}
		t.printf("%s\n", strings.TrimRight(line, " "))
	}
}

func (t *text) model() {
	m, e := t.plan.GetModel(), t.plan.GetEmbed()
	t.printf("model %s: %d layers, hidden %d, vocab %d, context %d\n", clip(m.GetArchitecture()), m.GetLayers(), m.GetHidden(), m.GetVocab(), m.GetContext())
	t.printf("experts: %d, top %d, in layers %s\n", m.GetExperts(), m.GetTopK(), ranges(m.GetMoeLayers()))
	t.printf("embed: %s * %s\n", clip(e.GetTensor()), number(float64(e.GetScale()), 32))
	if u := t.plan.GetUnused(); len(u) > 0 {
		t.printf("unused: %s\n", visible(strings.Join(u, ", ")))
	}
	c := t.plan.GetChat()
	if c == nil {
		return
	}
	t.printf("chat: template of %d bytes, stop %q, think %q %q %q, opens_thinking %v, thinking_optional %v\n", len(c.GetTemplate()),
		c.GetStop(), c.GetThinkOpen(), c.GetThinkPreamble(), c.GetThinkClose(), c.GetOpensThinking(), c.GetThinkingOptional())
}

// ranges writes ascending numbers with runs shortened, as in 1-4 7.
func ranges(ns []uint32) string {
	var parts []string
	for i := 0; i < len(ns); {
		j := i
		for j+1 < len(ns) && ns[j+1] == ns[j]+1 {
			j++
		}
		if part := strconv.FormatUint(uint64(ns[i]), 10); j > i {
			parts = append(parts, fmt.Sprintf("%s-%d", part, ns[j]))
		} else {
			parts = append(parts, part)
		}
		i = j + 1
	}
	return strings.Join(parts, " ")
}

func (t *text) weights(placed []*Placed) {
	t.printf("\nweights\n")
	var rows [][]string
	for i, w := range t.plan.GetWeights() {
		shape, bands := "", ""
		if i < len(placed) {
			shape, bands = bandsText(placed[i])
		}
		rows = append(rows, []string{w.GetName(), strings.ToLower(w.GetUse().String()), shape, bands, sources(w)})
	}
	t.table("  ", rows)
}

// bandsText is a placed weight's shape and bands.
func bandsText(p *Placed) (shape, bands string) {
	var parts []string
	for _, b := range p.GetBands() {
		part := typeName(b.GetType())
		if len(p.GetBands()) > 1 {
			part += fmt.Sprintf(" %d..%d", b.GetRow0(), b.GetRow0()+b.GetRows())
		}
		parts = append(parts, part)
	}
	return fmt.Sprintf("%d x %d", p.GetRows(), p.GetCols()), strings.Join(parts, ", ")
}

// sources is a weight's tensors where they are not just the one it is named after.
func sources(w *Weight) string {
	if len(w.GetTensors()) == 1 && w.GetTensors()[0] == w.GetName() {
		return ""
	}
	return "= " + strings.Join(w.GetTensors(), " | ")
}

func (t *text) records(placed []*PlacedRecord) {
	t.printf("\nrecords\n")
	for i, r := range t.plan.GetRecords() {
		t.printf("  layer %d", r.GetLayer())
		if i < len(placed) {
			t.printf(": %d bytes an expert", placed[i].GetStride())
		}
		t.printf("\n")
		var rows [][]string
		for j, part := range r.GetParts() {
			shape, bands := "", ""
			if i < len(placed) && j < len(placed[i].GetParts()) {
				shape, bands = bandsText(placed[i].GetParts()[j])
			}
			rows = append(rows, []string{part.GetName(), shape, bands, sources(part)})
		}
		t.table("    ", rows)
	}
}

func (t *text) ropes() {
	if len(t.plan.GetRopes()) == 0 {
		return
	}
	t.printf("\nropes\n")
	var rows [][]string
	for _, r := range t.plan.GetRopes() {
		how := fmt.Sprintf("base %s over %d dims", number(r.GetBase(), 64), r.GetBaseDims())
		if n := len(r.GetFreqs()); n > 0 {
			how = fmt.Sprintf("%d freqs %s..%s", n, number(r.GetFreqs()[0], 64), number(r.GetFreqs()[n-1], 64))
		}
		if r.GetDivisor() != "" {
			how += ", divided by " + r.GetDivisor()
		}
		if m := r.GetMagnitude(); m != 0 && m != 1 {
			how += ", times " + number(float64(m), 32)
		}
		rows = append(rows, []string{r.GetName(), fmt.Sprintf("%d pairs", r.GetPairs()), how})
	}
	t.table("  ", rows)
}

// number is a float in its shortest form of that many bits.
func number(v float64, bits int) string { return strconv.FormatFloat(v, 'g', -1, bits) }

// constantsText lists a dispatch's constants by field, name=value.
func constantsText(d *Decl, raw []byte) string {
	var parts []string
	for _, f := range d.Constants {
		if uint64(f.Offset)+uint64(f.Size) > uint64(len(raw)) {
			return fmt.Sprintf("%x", raw)
		}
		var words []string
		for at := f.Offset; at < f.Offset+f.Size; at += 4 {
			w := binary.LittleEndian.Uint32(raw[at:])
			switch {
			case strings.Contains(f.Type, "f32"):
				words = append(words, number(float64(math.Float32frombits(w)), 32))
			case strings.Contains(f.Type, "i32"):
				words = append(words, strconv.Itoa(int(int32(w))))
			default:
				words = append(words, strconv.FormatUint(uint64(w), 10))
			}
		}
		parts = append(parts, f.Name+"="+strings.Join(words, ","))
	}
	if len(d.Constants) == 0 && len(raw) > 0 {
		return fmt.Sprintf("%x", raw)
	}
	return strings.Join(parts, " ")
}

// typesText lists a kernel's types by slot.
func typesText(types map[string]uint32) string {
	var parts []string
	for _, slot := range sortedKeys(types) {
		parts = append(parts, slot+":"+strings.ToLower(ggml.Type(types[slot]).String()))
	}
	return strings.Join(parts, " ")
}
