package page

import (
	"testing"

	"understudy/internal/viewer/plan"
)

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

func TestIDsAreShortened(t *testing.T) {
	const id = "CA3cf730cd1b758d3ce807e2c21f78b4e7"
	for _, c := range []struct {
		cell  Cell
		shape plan.Shape
		want  string
	}{
		{Cell{Text: id}, plan.Code, "CA3cf7…b4e7"}, {Cell{Text: id}, plan.Plain, "CA3cf7…b4e7"}, {Cell{Text: "CA1"}, plan.Code, "CA1"},
		{Cell{Text: "a text that is no id"}, plan.Plain, "a text that is no id"}, {Cell{Text: id, Hint: "a hash"}, plan.Code, id},
	} {
		text := c.cell.Text
		if c.cell.Shorten(&plan.Column{Shape: c.shape}); c.cell.Text != c.want {
			t.Errorf("%s is %s, want %s", text, c.cell.Text, c.want)
		}
		if c.want != text && c.cell.Hint != text {
			t.Errorf("%s is said to be %s", text, c.cell.Hint)
		}
	}
}
