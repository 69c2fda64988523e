package jinja

import (
	"context"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestHostile: templates that would run, grow or nest without end are stopped.
func TestHostile(t *testing.T) {
	deep := func(open, close string, n int) string { return strings.Repeat(open, n) + strings.Repeat(close, n) }
	for name, source := range map[string]string{
		"long loop":        "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
		"large range":      "{{ range(10**15) | length }}",
		"large text":       "{{ 'x' * 10**10 }}",
		"doubled text":     "{% set ns = namespace(s='xxxxxxxx') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
		"doubled list":     "{% set ns = namespace(s=[1]) %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
		"replaced text":    "{% set ns = namespace(s='aa') %}{% for i in range(60) %}{% set ns.s = ns.s.replace('a', 'aa') %}{% endfor %}",
		"joined text":      "{% set ns = namespace(s='aa') %}{% for i in range(60) %}{% set ns.s = [ns.s, ns.s] | join %}{% endfor %}",
		"output":           "{% set s = 'x' * 1000000 %}{% for i in range(1000) %}{{ s }}{% endfor %}",
		"indent":           "{{ 'a\nb' | indent(10**9) }}",
		"json indent":      "{{ d | tojson(indent=10**9) }}",
		"batch":            "{{ [1] | batch(10**9, 'x') | list }}",
		"recursive macro":  "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
		"list in itself":   "{% set l = [] %}{% set _ = l.append(l) %}{{ l }}",
		"json of itself":   "{% set l = [] %}{% set _ = l.append(l) %}{{ l | tojson }}",
		"equal to itself":  "{% set l = [] %}{% set _ = l.append(l) %}{% set m = [] %}{% set _ = m.append(m) %}{{ l == m }}",
		"namespace loop":   "{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}",
		"long list loop":   "{% set l = [1] %}{% for x in range(3000) %}{% set _ = l.extend(l) %}{% endfor %}",
		"many brackets":    "{{ " + deep("(", ")", 100000) + " }}",
		"many lists":       "{{ " + deep("[", "]", 100000) + " }}",
		"many nots":        "{{ " + strings.Repeat("not ", 100000) + "1 }}",
		"many minuses":     "{{ " + strings.Repeat("- ", 100000) + "1 }}",
		"many operators":   "{{ 1" + strings.Repeat("+1", 100000) + " }}",
		"many comparisons": "{{ 1" + strings.Repeat("<(2<3)", 10000) + " }}",
		"many filters":     "{{ 1" + strings.Repeat("|abs", 100000) + " }}",
		"many ifs":         strings.Repeat("{% if 1 %}", 10000) + strings.Repeat("{% endif %}", 10000),
		"doubling code":    "{{ 1" + strings.Repeat("<(1<2", 90) + strings.Repeat(")<3", 90) + " }}",
		"too long":         strings.Repeat("x", maxSource+1),
		"code in a list":   "{{ [" + strings.Repeat("1"+strings.Repeat("<(1<2", 17)+strings.Repeat(")<3", 17)+",", 500) + "] }}",
		"code of defaults": "{% macro m(" + strings.Repeat("a=1"+strings.Repeat("<(1<2", 17)+strings.Repeat(")<3", 17)+",", 500) + "b) %}{% endmacro %}",
		"json separators":  "{% set b = 'x' * 10**7 %}{{ range(100000) | list | tojson(separators=[b, b]) }}",
		"growing list":     "{% set ns = namespace() %}{% for i in range(10**6) %}{% set ns.x = [ns.x" + strings.Repeat(",d", 100000) + "] %}{% endfor %}",
		"calls in calls":   "{% macro a(n) %}{% for i in range(10) %}{{ b(n) }}{% endfor %}{% endmacro %}{% macro b(n) %}{% for i in range(10) %}{{ a(n) if n }}{% endfor %}{% endmacro %}{{ a(1) }}",
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			out, err := render(t, source)
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Errorf("have %.100q, want an error", out)
			}
			if d := time.Since(start); d > 2*maxTime {
				t.Errorf("took %v, want at most %v", d, maxTime)
			}
			// What is made on the way is garbage at once, for the most part.
			if mb := int64(after.TotalAlloc-before.TotalAlloc) >> 20; mb > 8<<10 {
				t.Errorf("made %d MiB, want less", mb)
			}
			t.Logf("%v in %v", err, time.Since(start))
		})
	}
}

// TestDeadline: a rendering stops soon after its time, also where the template's own code
// is what takes long, or functions with much to look at.
func TestDeadline(t *testing.T) {
	and := "s"
	for range 14 {
		and = "(" + and + " and " + and + ")"
	}
	for name, source := range map[string]string{
		"long body":        "{% for x in range(10**6) %}" + strings.Repeat("{% set a = b %}", 50000) + "{% endfor %}",
		"long condition":   "{% for x in range(10**6) if " + and + " %}{% endfor %}",
		"long block":       "{% macro m() %}{% for x in range(10**6) %}{{ caller() }}{% endfor %}{% endmacro %}{% call m() %}" + strings.Repeat("{% set a = b %}", 50000) + "{% endcall %}",
		"long macro":       "{% macro m() %}" + strings.Repeat("{% set a = b %}", 50000) + "{% endmacro %}{% for x in range(10**6) %}{{ m() }}{% endfor %}",
		"long arguments":   "{% macro m() %}{% endmacro %}{% for x in range(10**6) %}{{ m(s" + strings.Repeat(",s", 100000) + ") }}{% endfor %}",
		"many empty lists": "{% for x in range(10**6) %}{% set y = [] * 2147483647 %}{% endfor %}",
		"counted text":     "{% set b = 'a' * 10**7 %}{% for x in range(10**6) %}{% set y = ''.count(b) %}{% endfor %}",
		"long key":         "{% set b = s * 10**5 %}{% for x in range(10**6) %}{% set y = d[b] %}{% endfor %}",
		"words":            "{% set b = 'a ' * 10**6 %}{{ ([b] * 10**6) | map('wordcount') | list }}",
		"tests":            "{% set b = 'A' * 10**7 %}{{ ([b] * 10**6) | select('upper') | list }}",
		"long path":        "{% set m = {} %}{% set _ = m.update(a=m) %}{{ ([m] * 10**5) | map(attribute='a.' * 10**6 ~ 'a') | list }}",
		"strip":            "{{ ('a' * 4000000).strip('b' * 4000000 ~ 'a') }}",
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			template, err := Compile(source)
			if err != nil {
				t.Fatal(err)
			}
			v, err := Request([]byte(request))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			defer cancel()
			_, err = template.Render(ctx, Vars{Request: v})
			if d := time.Since(start); d > 10*time.Second {
				t.Errorf("took %v, want little more than 0.1 s", d)
			}
			t.Logf("%v in %v", err, time.Since(start))
		})
	}
}

// TestLongTemplates: compiling takes time in proportion to the template.
func TestLongTemplates(t *testing.T) {
	many := func(format string, n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.ReplaceAll(format, "#", strconv.Itoa(i)))
		}
		return b.String()
	}
	for name, source := range map[string]string{
		"elif":    "{% if 0 %}" + many("{% elif 0 %}x", 60000) + "{% endif %}",
		"set":     many("{% set a# = 1 %}", 50000),
		"loop":    "{% for x in [1] %}" + many("{% set a# = 1 %}", 50000) + "{% endfor %}",
		"macro":   "{% macro m(" + many("a#=1,", 50000) + "b) %}{% endmacro %}",
		"with":    "{% with b = 1" + many(", a#=1", 50000) + " %}{% endwith %}",
		"strings": "{{ " + many("'#' ", 100000) + "}}",
		"output":  many("{{1}}", 200000),
	} {
		start := time.Now()
		if _, err := Compile(source); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("%s: took %v, want less than a second or two", name, d)
		}
	}
}
