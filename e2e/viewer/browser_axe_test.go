// Axe: every page of the viewer is looked at by axe-core, which knows the rules of
// accessibility that a program can check (WCAG 2.2 A and AA).

package viewer

import (
	"fmt"
	"testing"

	"understudy/e2e/browser"
	"understudy/e2e/pages"
	"understudy/e2e/rig"
	"understudy/internal/sample"
)

// lookAt runs axe-core on a page as on desks, on tablets and on a telephone, or at those of the widths that run picks.
func lookAt(b *browser.Tab, axe string, p pages.Page, run func() bool) {
	b.T.Helper()
	for _, width := range []int64{1920, 1280, 1024, 768, 360} {
		if !run() {
			continue
		}
		where := fmt.Sprintf("%s at %d px", p.Name, width)
		b.Resize(width, 740)
		b.Open(p.Path)
		b.CheckAccessibility(axe, where)
		for _, control := range browser.Eval[[]string](b, unfocused) {
			b.T.Errorf("%s: no focus is seen at %s", where, control)
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
	script := browser.Axe(t)
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
	b := browser.OpenTab(t, viewer)
	run := sample.OneIn(t, 60)
	for _, p := range append(all, past...) {
		lookAt(b, script, p, run)
	}
	down, err := pages.Down(viewer, api)
	if err != nil {
		t.Fatal(err)
	}
	run = sample.OneIn(t, 5)
	for _, p := range down {
		lookAt(b, script, p, run)
	}
}
