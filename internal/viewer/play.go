// Play: a record's audio or image as a page offers it. Nothing is fetched until
// somebody asks for it.

package viewer

import (
	"path"
	"slices"
	"strings"
	"understudy/internal/viewer/plan"

	"understudy"
	"understudy/internal/access"
)

// playing is the content of a record, for one caller.
type playing struct {
	Hidden bool   // the caller may not have it
	Name   string // "Recording RE12…"
	Audio  string // address to play, "" when it is no audio
	Image  string
	Files  []link // to keep
}

// mediaPlayer offers the contents of records.
type mediaPlayer struct{ *exchange }

// playing is what a record's content offers; nil when the kind has none, or
// nobody serves it.
func (q mediaPlayer) playing(k *plan.Kind, row access.Row, vars understudy.Query) *playing {
	if len(k.Media) == 0 || row.ID == "" || q.v.Media == nil {
		return nil
	}
	p := &playing{Name: plan.UpperFirst(k.One) + " " + shortID(row.ID)}
	for _, m := range k.Media {
		t := q.mediaTarget(k, m, row, vars)
		if t == nil {
			continue
		}
		url := mediaURL(q.exchange, t)
		if url == "" {
			p.Hidden = true
			continue
		}
		q.offer(p, m, row, url)
	}
	if p.Audio == "" && p.Image == "" && len(p.Files) == 0 && !p.Hidden {
		return nil
	}
	return p
}

// offer adds one address of a content: to play or show by its type, to keep
// under its extension. An address without one is kept only when it is alone.
func (q mediaPlayer) offer(p *playing, m *understudy.Media, row access.Row, url string) {
	switch kind := mediaType(m, row); {
	case strings.HasPrefix(kind, "audio/") && p.Audio == "":
		p.Audio = url
	case strings.HasPrefix(kind, "image/") && p.Image == "":
		p.Image = url
	}
	if ext := path.Ext(m.Path); ext != "" && !strings.Contains(ext, "}") {
		p.Files = append(p.Files, link{Href: url, Text: strings.ToUpper(ext[1:])})
	} else if len(p.Files) == 0 {
		p.Files = append(p.Files, link{Href: url, Text: "Download"})
	}
}

// mediaType is what a content most likely is: the type a field of the record
// gives, where it is one the path may have; else the first the path may have.
func mediaType(m *understudy.Media, row access.Row) string {
	for _, v := range row.Fields() {
		if v.State == access.Seen && slices.ContainsFunc(m.Types, func(t string) bool { return t == v.Text || strings.HasSuffix(t, "/") && strings.HasPrefix(v.Text, t) }) {
			return v.Text
		}
	}
	if len(m.Types) > 0 {
		return m.Types[0]
	}
	return ""
}

// mediaTarget is the content of a record, nil when its path needs what neither
// the record nor the page has.
func (q mediaPlayer) mediaTarget(k *plan.Kind, m *understudy.Media, row access.Row, vars understudy.Query) *understudy.Target {
	parts := strings.Split(row.ID, understudy.IDSeparator)
	at, ok := plan.Expand(m.Path, func(name string) (string, bool) {
		if i := slices.Index(m.ID, name); i >= 0 && i < len(parts) {
			return parts[i], true
		}
		if v, ok := vars.Get(name); ok {
			return v, true
		}
		if v, ok := vars.Get(understudy.OwnPrefix + name); ok {
			return v, true
		}
		if v, ok := k.Source.Fill(name); ok {
			return v, true
		}
		field := k.FieldOf(k.Source.ParentOf(m.Path, []string{name}))
		if field == "" {
			return "", false
		}
		v := row.Field(field)
		return v.Text, v.State == access.Seen
	})
	if !ok {
		return nil
	}
	t, err := k.Source.Spec.Target(k.Source.Name, at, "")
	if err != nil || t.Media != m {
		return nil
	}
	return t
}

// draw writes the player, the button that shows an image, and the files.
func (p *playing) draw(b *strings.Builder) {
	if p.Hidden {
		b.WriteString(`<span class="hidden" title="Your role does not show this">hidden</span>`)
		return
	}
	b.WriteString(`<div class="media">`)
	if p.Audio != "" {
		b.WriteString(`<audio controls preload="none"`)
		attribute(b, "src", p.Audio)
		attribute(b, "aria-label", p.Name)
		b.WriteString("></audio>")
	}
	if p.Image != "" {
		b.WriteString(`<a class="button"`)
		attribute(b, "href", p.Image)
		attribute(b, "data-image", p.Name)
		b.WriteString(">Show image</a>")
	}
	for _, f := range p.Files {
		b.WriteString(`<a download`)
		attribute(b, "href", f.Href)
		attribute(b, "aria-label", p.Name+": "+f.Text)
		b.WriteByte('>')
		escape(b, f.Text)
		b.WriteString("</a>")
	}
	b.WriteString("</div>")
}
