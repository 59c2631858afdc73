package page

import "testing"

func TestTagsAreEscaped(t *testing.T) {
	var c Cell
	if c.DrawTags([]string{"<x>", "y"}); c.Value() != `<span class="pill">&lt;x&gt;</span> <span class="pill">y</span>` {
		t.Errorf("two tags are %s", c.Value())
	}
	var none Cell
	if none.DrawTags(nil); none.Value() != `<span class="none">none</span>` {
		t.Errorf("no tags are %s", none.Value())
	}
}
