package jinja

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// request of the tests.
const request = `{"messages":[{"role":"user","content":"Zoë <b>"},{"role":"assistant","content":"a,b , c"}],"n":7,"f":1.5,"e":[],"d":{"b":1,"A":[true,null]},"s":"héLLo wörld"}`

func render(t testing.TB, source string) (string, error) {
	t.Helper()
	template, err := Compile(source)
	if err != nil {
		return "", err
	}
	v, err := Request([]byte(request))
	if err != nil {
		t.Fatal(err)
	}
	pieces, err := template.Render(context.Background(), Vars{Request: v, Tokens: map[string]string{"bos_token": "<s>"}, Now: goldenTime})
	return joined(pieces), err
}

// TestPython has what Python's Jinja2 3.1 renders, with the settings of
// apply_chat_template.
func TestPython(t *testing.T) {
	for source, want := range map[string]string{
		// Whitespace.
		"a\n  {% if true %}\n  b\n  {% endif %}\nc\n": "a\n  b\nc", "a {%- if true -%} b {%- endif %} c": "ab c", "  {{ 1 }}  {# x #}  \n y\n\n": "  1    \n y\n",
		"{% if 1 +%}\nx{% endif %}": "\nx", "x\n  {%+ if 1 %}y{% endif %}": "x\n  y", "{% raw %}{{ x }}{% endraw %}\n!": "{{ x }}!", "a\r\nb\r": "a\nb",
		"{%- raw -%} {% if %} {%- endraw -%} z": "{% if %}z", "{# {{ \" #}x": "x", "x{#- y -#} z": "xz",
		// Literals and operators.
		`{{ 'a\n\'\x41\u00e9\q' "b" }}`: "a\n'Aé\\qb", "{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % -3 }} {{ 7 / 2 }} {{ 2 ** 3 }} {{ 2 ** -1 }}": "3 -4 -2 3.5 8 0.5",
		"{{ 1 + 2 * 3 - -1 }} {{ 1.0 }} {{ 1e16 }} {{ 1e-5 }} {{ 1_000 }} {{ 0x1f }}": "8 1.0 1e+16 1e-05 1000 31",
		"{{ 'a' ~ 1 + 2 }}":                     "can only", // ~ binds tighter: 'a1' + 2
		"{{ 1 < 2 < 3 }} {{ 3 > 2 > 2 }}":       "True False",
		"{{ not true or 1 and '' }}|{{ none }}": "|None",
		"{{ 'x' in 'xyz' }} {{ 2 not in [1] }} {{ 'b' in d }} {{ 1 == 1.0 == true }}":                        "True True True True",
		"{{ [1, 'a', none, {'k': (1, 2)}] }}":                                                                "[1, 'a', None, {'k': [1, 2]}]",
		`{{ ["it's", 'q"', "\n"] }}`:                                                                         `["it's", 'q"', '\n']`,
		"{{ 'abc'[1] }}{{ 'abc'[-1] }}{{ 'abcdef'[1:-1:2] }}{{ 'abc'[::-1] }}{{ [1,2,3][:2] }}{{ 'ab'[9] }}": "bcbdcba[1, 2]",
		"{{ 'a' if 0 }}{{ 'b' if 0 else 'c' if 1 else 'd' }}":                                                "c",
		"{{ 'ab' * 2 }}{{ '%s=%d' % ('a', 3) }}{{ '{} {1} {x}'.format(1, 2, x=3) }}":                         "ababa=31 2 3",
		"{{ (1, 2)[0] }}{{ 1 if x is defined else 2 }}{{ x }}{{ messages[0].nothing }}":                      "12",
		// Tests and filters.
		"{{ n is odd }} {{ n is divisibleby 7 }} {{ s is string and d is mapping and e is sequence }} {{ n is not none }}": "True True True True",
		"{{ 'a' is in ['a'] }} {{ true is number }} {{ true is integer }} {{ '' is iterable }}":                            "True True False True",
		"{{ d | tojson }} {{ d | tojson(indent=1) }}":                                                                      "{\"b\": 1, \"A\": [true, null]} {\n \"b\": 1,\n \"A\": [\n  true,\n  null\n ]\n}",
		"{{ d | tojson(separators=(',', ':')) }}{{ s | tojson }}{{ '<&>' | tojson }}":                                      `{"b":1,"A":[true,null]}"héLLo wörld""<&>"`,
		"{{ d | dictsort }} {{ d.items() | list }} {{ d | length }}":                                                       "[['A', [True, None]], ['b', 1]] [['b', 1], ['A', [True, None]]] 2",
		"{{ s | title }} {{ s | capitalize }} {{ s | upper }} {{ ' x ' | trim }}":                                          "Héllo Wörld Héllo wörld HÉLLO WÖRLD x",
		"{{ messages | map(attribute='role') | join('/') }} {{ ['a', 'B'] | map('upper') | list }}":                        "user/assistant ['A', 'B']",
		"{{ messages | selectattr('role', 'equalto', 'user') | list | length }} {{ [1, 2, 3] | reject('odd') | list }}":    "1 [2]",
		"{{ x | default('d') }} {{ '' | default('d', true) }} {{ [3, 1, 2] | sort(reverse=true) }} {{ [1, 2] | sum }}":     "d d [3, 2, 1] 3",
		"{{ 'a\nb\n\nc' | indent(2) }}|{{ '3.7' | int }} {{ '7' | float }} {{ 2.5 | round }} {{ [1, 1] | unique | list }}": "a\n  b\n\n  c|3 7.0 2.0 [1]",
		// Methods.
		"{{ 'a,b'.split(',') }} {{ ' a  b '.split() }} {{ 'a,b,c'.rsplit(',', 1) }} {{ 'xaxx'.strip('x') }}": "['a', 'b'] ['a', 'b'] ['a,b', 'c'] a",
		"{{ 'abc'.startswith(('x', 'a')) }} {{ 'aXbX'.replace('X', '-', 1) }} {{ 'é1'.find('1') }}":          "True a-bX 1",
		"{{ d.get('zz') }} {{ d.get('zz', 1) }} {{ d['items'] is callable }} {{ d.keys() | list }}":          "None 1 True ['b', 'A']",
		"{% set l = [1] %}{% set _ = l.append(2) %}{{ l }}{{ l.pop() }}{{ l }}":                              "[1, 2]2[1]",
		// Statements.
		"{% for x in [1, 2, 3] if x != 2 %}{{ loop.index }}/{{ loop.length }}:{{ x }}{{ ',' if not loop.last }}{% endfor %}": "1/2:1,2/2:3",
		"{% for k, v in d.items() %}{{ k }}={{ v }};{% else %}none{% endfor %}{% for x in [] %}{% else %}none{% endfor %}":   "b=1;A=[True, None];none",
		"{% for x in range(9) %}{% if x == 1 %}{% continue %}{% elif x > 3 %}{% break %}{% endif %}{{ x }}{% endfor %}":      "023",
		"{% set v = 0 %}{% for x in [1, 2] %}{{ v }}{% set v = x %}{{ v }}{% endfor %}{{ v }}":                               "01020",
		"{% set ns = namespace(v=0) %}{% for x in [1, 2] %}{% set ns.v = ns.v + x %}{% endfor %}{{ ns.v }}":                  "3",
		"{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set t %}x{{ a }}{% endset %}{{ t }}{% set u | upper %}y{% endset %}{{ u }}":   "12x1Y",
		"{% macro m(a, b='x,y', c=none) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, c=2) }} {{ m(b=3, a=4) }}":   "1x,yNone 1x,y2 43None",
		"{% macro f(n) %}{{ n }}{% if n %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}":                                 "3210",
		"{% macro w() %}[{{ caller('z') }}]{% endmacro %}{% call(a) w() %}{{ a }}{{ n }}{% endcall %}":                       "[z7]",
		"{% filter upper %}ab{{ n }}{% endfilter %}{% with q = 1, r = 2 %}{{ q }}{{ r }}{% endwith %}{{ q }}":                "AB712",
		"{{ strftime_now('%d %b %Y %H:%M %-d') }} {{ bos_token }}":                                                           "29 Nov 2026 12:00 29 <s>",
		"{{ {'a': {'b': 1}}['a']['b'] }}{{ {'a':{}} }}":                                                                      "1{'a': {}}",
	} {
		have, err := render(t, source)
		if err != nil {
			have = err.Error()
		}
		if have != want && !(err != nil && strings.Contains(have, want)) {
			t.Errorf("%q:\nhave %q\nwant %q", source, have, want)
		}
	}
}

// TestRefused has what Python refuses.
func TestRefused(t *testing.T) {
	for source, want := range map[string]string{
		"{{ x.y }}": "'x' is undefined", "{{ e[0].role }}": "'e[0]' is undefined", "{{ 'a' + 1 }}": "can only concatenate", "{{ 'a' + none }}": "can only concatenate",
		"{{ f() }}": "want a function", "{{ g() }}": "'g' is undefined", "{{ 1 < 'a' }}": "not supported", "{% for x in 1 %}{% endfor %}": "not iterable",
		"{{ 1 | length }}": "has no len", "{{ x | tojson }}": "not JSON serializable", "{{ s | nope }}": "no filter named", "{{ s is nope }}": "no test named",
		"{% if 1 %}": "want elif or else or endif", "{{ 1 + }}": "unexpected", "{{ (1 }}": "unexpected", "{% nope %}": "unknown statement",
		"{{ 'a }}": "closing", "{# x": "want #}", "{% endif %}": "unknown statement", "{{ 1 2 }}": "unexpected 2", "{% break %}": "outside of a loop",
		"{% set d.x = 1 %}": "non-namespace", "{{ 1 / 0 }}": "division by zero", "{{ raise_exception('no ' ~ n) }}": "no 7", "{{ [] | items }}": "mapping",
		"{% for a, b in [1] %}{% endfor %}": "not iterable", "{% for a, b in [[1]] %}{% endfor %}": "want 2", "{% import 'x' %}": "unknown statement",
		"{{ s.__class__ }}{{ s.__class__.x }}": "is undefined", "{{ 9223372036854775807 + 1 }}": "64 bits", "{{ ''.join([1]) }}": "expected str",
	} {
		have, err := render(t, source)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: have %q and the error %v, want an error with %q", source, have, err, want)
		}
	}
	_, err := render(t, "{{ raise_exception('no') }}")
	if raised := (Raised{}); !errors.As(err, &raised) || raised.Message != "no" {
		t.Errorf("have %v, want it raised", err)
	}
}

// TestCancel: a rendering ends with its context.
func TestCancel(t *testing.T) {
	template, err := Compile("{% for a in range(100000) %}{% for b in range(1000) %}{{ a }}{% endfor %}{% endfor %}")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := template.Render(ctx, Vars{}); !strings.Contains(err.Error(), "canceled") {
		t.Errorf("have %v, want the context's error", err)
	}
}

// TestMarks: message text is told apart whatever is done with it, and the
// template's own text is never taken for it.
func TestMarks(t *testing.T) {
	for source, want := range map[string]string{ // message text in ‹›
		"<{{ messages[0].content }}>":                                                   "<‹Zoë <b>›>",
		"{{ messages[0].content[1:3] ~ 'x' }}":                                          "‹oë›x",
		"{{ messages[0].content | upper }}":                                             "‹ZOË <B>›",
		"{{ messages[0]['content'].split(' ')[1] }}!":                                   "‹<b>›!",
		"{{ messages[1].content.split(',') | join('<,>') }}":                            "‹a›<,>‹b ›<,>‹ c›",
		"{{ messages[1].content.replace(',', '<im>') }}":                                "‹a›<im>‹b ›<im>‹ c›",
		"{{ '[x]'.replace('x', messages[1].content[0]) }}":                              "[‹a›]",
		"{{ messages[0].content | tojson }}":                                            "\"‹Zoë <b>›\"",
		"{{ d | tojson }}":                                                              "{\"‹b›\": 1, \"‹A›\": [true, null]}",
		"{{ d }}":                                                                       "{'‹b›': 1, '‹A›': [True, None]}",
		"{% for k in d %}{{ k }},{% endfor %}":                                          "‹b›,‹A›,",
		"{% for c in messages[1].content[:2] %}{{ c }}|{% endfor %}":                    "‹a›|‹,›|",
		"{% set x %}{{ s }}{% endset %}{{ x | trim | reverse }}":                        "‹dlröw oLLéh›",
		"{{ '<think>' in messages[0].content }}":                                        "False",
		"{{ '%s%s' % ('a', s[0]) }}{{ '{}'.format(s[1]) }}":                             "a‹hé›",
		"{{ {s: 1}.keys() | list | first }}":                                            "‹héLLo wörld›",
		"{{ messages[0].content.startswith('Zoë') }}":                                   "True",
		"{{ messages[0].role == 'user' and messages[0].role }}":                         "‹user›",
		"{{ s | length }}{{ s.find('w') }}":                                             "116",
		"{{ n }}{{ f }}":                                                                "71.5",
		"{{ strftime_now(s) }}{{ strftime_now('%Y') }}":                                 "‹héLLo wörld›2026",
		"{{ bos_token }}":                                                               "<s>",
		"{{ {'role': 'x'}[messages[0].role] }}{{ messages[0] | items | first | last }}": "‹user›",
	} {
		template, err := Compile(source)
		if err != nil {
			t.Fatal(err)
		}
		v, err := Request([]byte(request))
		if err != nil {
			t.Fatal(err)
		}
		pieces, err := template.Render(context.Background(), Vars{Request: v, Tokens: map[string]string{"bos_token": "<s>"}, Now: goldenTime})
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		var b strings.Builder
		for _, p := range pieces {
			if p.Message {
				b.WriteString("‹" + p.Text + "›")
			} else {
				b.WriteString(p.Text)
			}
		}
		if have := b.String(); have != want {
			t.Errorf("%s:\nhave %s\nwant %s", source, have, want)
		}
	}
}

// FuzzRender: any template and request end in a text or an error, in time; and
// no message text comes out as the template's.
func FuzzRender(f *testing.F) {
	f.Add("{% for m in messages %}{{ m.role + m['content'] | trim }}{% endfor %}", request)
	f.Add("{%- macro m(a, b=[1]) -%}{{ a|tojson(indent=2) }}{%- endmacro -%}{{ m(d) }}{% set ns = namespace(x=1) %}{% set ns.x = ns.x * 2 %}", request)
	f.Add("{{ s[::-1].split('l')|map('upper')|join(',') }}{% raw %}{{{% endraw %}{# c #}{{ '\\u0041' }}", `{"s":"hello"}`)
	f.Add("{{ messages[0].content.split('</think>')[-1].lstrip('\\n') if '</think>' in s else s }}", request)
	f.Add("{% call(x) m() %}{% endcall %}{% filter trim %} {% endfilter %}{% with a=1 %}{% endwith %}{% break %}", `{}`)
	f.Fuzz(func(t *testing.T, source, request string) {
		template, err := Compile(source)
		if err != nil {
			if strings.Contains(err.Error(), "BUG") {
				t.Fatal(err)
			}
			return
		}
		v, err := Request([]byte(request))
		if err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start := time.Now()
		pieces, err := template.Render(ctx, Vars{Request: v})
		if d := time.Since(start); d > 20*time.Second {
			t.Fatalf("took %v", d)
		}
		if err != nil {
			return
		}
		// U+E123 is in no template, so it must be message text.
		if strings.ContainsRune(source, '\uE123') || strings.Contains(source, "\\") {
			return
		}
		for _, p := range pieces {
			if !p.Message && strings.ContainsRune(p.Text, '\uE123') {
				t.Fatalf("have message text %q as the template's", p.Text)
			}
		}
	})
}
