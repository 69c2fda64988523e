package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strings"
)

// A drawing is one or two charts over the budget, one above the other.
const (
	svgWidth, svgHeight         = 760, 320 // of a chart
	svgLeft, svgRight           = 64, 130
	svgTop, svgBottom           = 44, 46
	svgPlotWidth, svgPlotHeight = svgWidth - svgLeft - svgRight, svgHeight - svgTop - svgBottom
	svgTicks                    = 5
	svgStyle                    = `<style>svg{--ink:#1f2328;--faint:#d0d7de;--back:#fff;--a:#0969da;--b:#bc4c00;--c:#6e7781;--d:#1a7f37}@media(prefers-color-scheme:dark){svg{--ink:#e6edf3;--faint:#30363d;--back:#0d1117;--a:#58a6ff;--b:#f0883e;--c:#8b949e;--d:#3fb950}}text{fill:var(--ink);font:12px system-ui,sans-serif}.title{font-weight:600;font-size:14px}.grid{stroke:var(--faint)}path{fill:none;stroke-width:2}</style>`
)

// svgLine is a curve of a chart.
type svgLine struct {
	name, color string // color: a to d of the style
	dashed      bool
	at          func(planPoint) float64
}

// svg draws hit rates, and tokens per second where there are limits, over the budget.
func (r *planReport) svg() []byte {
	hits := []svgLine{
		{"best possible", "c", true, func(p planPoint) float64 { return 100 * p.Best.HitRate }},
		{"frequency", "b", false, func(p planPoint) float64 { return 100 * p.Freq.HitRate }},
		{"LRU", "a", false, func(p planPoint) float64 { return 100 * p.LRU.HitRate }},
	}
	speeds := []svgLine{
		{"limit", "d", false, func(p planPoint) float64 { return p.Bound }},
		{"simulated", "a", false, func(p planPoint) float64 { return p.Likely }},
		{"no overlap", "d", true, func(p planPoint) float64 { return p.Serial }},
	}
	charts := 1
	if r.Limits.Known() {
		charts = 2
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">%s<rect width="100%%" height="100%%" style="fill:var(--back)"/>`,
		svgWidth, charts*svgHeight, svgWidth, charts*svgHeight, svgStyle)
	r.chart(&b, 0, "Experts found in their slots, %: "+r.Trace.Model, 100, hits)
	if charts == 2 {
		top := 0.0
		for _, p := range r.Curve {
			top = max(top, p.Bound)
		}
		r.chart(&b, svgHeight, "Tokens per second", round(top), speeds)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// round is the next of 1, 2, 5, 10, 20, … from x on.
func round(x float64) float64 {
	if x <= 0 {
		return 1
	}
	p := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range []float64{1, 2, 5} {
		if m*p >= x {
			return m * p
		}
	}
	return 10 * p
}

// chart draws one chart from y on, with values up to most.
func (r *planReport) chart(b *bytes.Buffer, y int, title string, most float64, lines []svgLine) {
	widest := float64(max(r.Curve[len(r.Curve)-1].Budget, 1))
	px := func(budget uint64) float64 { return svgLeft + svgPlotWidth*float64(budget)/widest }
	py := func(v float64) float64 { return float64(y+svgTop) + svgPlotHeight*(1-min(v/most, 1)) }
	text := func(x, y float64, class, anchor, s string) {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" class="%s" text-anchor="%s">`, x, y, class, anchor)
		_ = xml.EscapeText(b, []byte(s)) // a buffer takes all
		b.WriteString("</text>")
	}
	text(svgLeft, float64(y+24), "title", "start", title)
	for i := range svgTicks + 1 {
		v, budget := most*float64(i)/svgTicks, uint64(widest*float64(i)/svgTicks)
		fmt.Fprintf(b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>`, svgLeft, svgLeft+svgPlotWidth, py(v), py(v))
		text(svgLeft-8, py(v)+4, "", "end", fmt.Sprintf("%.4g", v))
		text(px(budget), py(0)+18, "", "middle", size(budget))
	}
	text(svgLeft+svgPlotWidth/2, py(0)+36, "", "middle", "GPU budget")
	for i, l := range lines {
		var d strings.Builder
		for j, p := range r.Curve {
			fmt.Fprintf(&d, "%c%.1f %.1f", "ML"[min(j, 1)], px(p.Budget), py(l.at(p)))
		}
		dash := ""
		if l.dashed {
			dash = ` stroke-dasharray="5 4"`
		}
		fmt.Fprintf(b, `<path style="stroke:var(--%s)"%s d="%s"/>`, l.color, dash, d.String())
		ly := float64(y + svgTop + 10 + 20*i)
		fmt.Fprintf(b, `<path style="stroke:var(--%s)"%s d="M%d %.1fh22"/>`, l.color, dash, svgWidth-svgRight+10, ly)
		text(svgWidth-svgRight+38, ly+4, "", "start", l.name)
		for _, p := range r.Curve {
			if p.Chosen {
				fmt.Fprintf(b, `<circle r="4" cx="%.1f" cy="%.1f" style="fill:var(--%s)"/>`, px(p.Budget), py(l.at(p)), l.color)
			}
		}
	}
}
