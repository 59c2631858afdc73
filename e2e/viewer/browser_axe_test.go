// Axe: every page of the viewer is looked at by axe-core, which knows the rules of
// accessibility that a program can check (WCAG 2.2 A and AA).

package viewer

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"understudy/e2e/pages"
	"understudy/e2e/rig"
	"understudy/internal/sample"
)

// violation is a rule of axe-core that a page breaks.
type violation struct {
	ID    string
	Help  string
	Nodes []struct {
		HTML           string
		FailureSummary string
	}
}

// axe reads axe-core.
func axe(t *testing.T) string {
	t.Helper()
	return rig.ReadFile(t, "../sdks/node/node_modules/axe-core/axe.min.js") // make setup installs it
}

// sound runs axe-core on the page at hand, in light and in dark. In dark the colours
// alone are looked at: nothing else differs.
func (b *tab) sound(axe, where string) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](axe))
	for scheme, only := range map[string]string{
		"light": `{type:"tag",values:["wcag2a","wcag2aa","wcag21a","wcag21aa","wcag22aa","best-practice"]}`,
		"dark":  `{type:"rule",values:["color-contrast"]}`,
	} {
		command(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}, // no colour is on its way
		}})
		text := eval[string](b, `axe.run(document,{runOnly:`+only+`,resultTypes:["violations"]}).then(r => JSON.stringify(r.violations))`)
		var all []violation
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			b.t.Fatalf("%s: axe-core says %.200s: %v", where, text, err)
		}
		for _, v := range all {
			for _, n := range v.Nodes[:min(3, len(v.Nodes))] {
				b.t.Errorf("%s, %s: %s (%s) at %.200s\n%s", where, scheme, v.Help, v.ID, n.HTML, n.FailureSummary)
			}
		}
	}
}

// look runs axe-core on a page as on desks, on tablets and on a telephone, or at those of the widths that run picks.
func (b *tab) look(axe string, p pages.Page, run func() bool) {
	b.t.Helper()
	for _, width := range []int64{1920, 1280, 1024, 768, 360} {
		if !run() {
			continue
		}
		where := fmt.Sprintf("%s at %d px", p.Name, width)
		b.size(width, 740)
		b.open(p.Path)
		b.sound(axe, where)
		for _, control := range eval[[]string](b, unfocused) {
			b.t.Errorf("%s: no focus is seen at %s", where, control)
		}
	}
}

// unfocused are the controls that show no focus.
const unfocused = `[...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")].filter(e => {
	if (e.tabIndex < 0 || !e.checkVisibility({visibilityProperty: true})) return false;
	e.focus({focusVisible: true});
	const outlined = [null, "::after"].some(part => getComputedStyle(e, part).outlineStyle != "none");
	let around = e;
	while (around && getComputedStyle(around).clipPath == "none") around = around.parentElement;
	return document.activeElement == e && (!outlined || around);
}).map(e => e.outerHTML.slice(0, 120))`

func TestBrowserAxe(t *testing.T) {
	t.Parallel()
	script := axe(t)
	demo := rig.StartDemo(t, "--latency", "1ms", "--records", "3000")
	viewer, api := demo.URL("viewer"), demo.URL("slowapi")
	all, err := pages.Find(viewer)
	if err != nil {
		t.Fatal(err)
	}
	past, err := pages.Alter(viewer, api)
	if err != nil {
		t.Fatal(err)
	}
	b := openTab(t, viewer)
	run := sample.OneIn(t, 60)
	for _, p := range append(all, past...) {
		b.look(script, p, run)
	}
	down, err := pages.Down(viewer, api)
	if err != nil {
		t.Fatal(err)
	}
	run = sample.OneIn(t, 5)
	for _, p := range down {
		b.look(script, p, run)
	}
}
