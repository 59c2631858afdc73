// Draw: random list requests.

package composetest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"understudy"
	"understudy/spec"
)

// Request is one list request.
type Request struct {
	Target string // the path and the raw query
	Kind   *spec.Kind
	// Unsure, when it is not empty, is why a holder of nothing but records cannot
	// know upstream's answer: it may have to be asked.
	Unsure string
}

// Generator draws requests of a world. The same seed draws the same ones, as
// long as the world is the same. It is used by one goroutine.
type Generator struct {
	w   *World
	rng *rand.Rand
	why string
}

// NewGenerator begins to draw.
func NewGenerator(w *World, seed uint64) *Generator {
	return &Generator{w: w, rng: rand.New(rand.NewPCG(seed, 0x11575))}
}

// oneIn is true once in n times.
func (g *Generator) oneIn(n int) bool { return g.rng.IntN(n) == 0 }

func pick[T any](g *Generator, from ...T) T { return from[g.rng.IntN(len(from))] }

// Request draws one: any list, any filters, sizes, pages and tokens, mostly well
// formed.
func (g *Generator) Request() Request {
	g.why = ""
	l := g.list()
	path := g.path(l)
	if g.untold(l) {
		g.why = "records that do not tell their account"
	}
	var q understudy.Query
	for _, f := range l.list.Filters {
		if !g.oneIn(3 + len(l.list.Filters)/3) {
			continue
		}
		q = append(q, g.filter(l, f))
		if g.oneIn(25) {
			q = append(q, g.filter(l, f)) // of several the last counts
		}
	}
	q = append(q, g.paging(l)...)
	if g.oneIn(40) {
		q = append(q, understudy.Param{Name: pick(g, "Nonsense", "pagesize", "page", "to", "StartTime>=", "", "From ", "Ünknown"), Value: "1"})
		g.why = "an unknown parameter"
	}
	if g.oneIn(2) {
		g.rng.Shuffle(len(q), func(i, j int) { q[i], q[j] = q[j], q[i] })
	}
	g.widens(l, q)
	target := path
	for i, p := range q {
		target += pick(g, "?")
		if i > 0 {
			target = target[:len(target)-1] + pick(g, "&", "&", "&", "&&")
		}
		target += g.encode(p.Name, true)
		if !p.Bare {
			target += "=" + g.encode(p.Value, false)
		}
	}
	return Request{Target: target, Kind: l.kind, Unsure: g.why}
}

// widens notes when the last word on a filter asks for what is not held.
func (g *Generator) widens(l *list, q understudy.Query) {
	for _, f := range l.list.Filters {
		asked := false
		for _, p := range q {
			if f.Op == "widen" && p.Name == f.Name {
				asked = strings.EqualFold(p.Value, "true")
			}
		}
		if asked {
			g.why = "what is not held"
		}
	}
}

// list draws a template first, so that each kind comes as often, and then one
// of its paths, more often one with rows.
func (g *Generator) list() *list {
	var templates []*spec.List
	for _, l := range g.w.lists {
		if len(templates) == 0 || templates[len(templates)-1] != l.list {
			templates = append(templates, l.list)
		}
	}
	for _, l := range templates { // one with many filters has more to ask for
		for range len(l.Filters) / 2 {
			templates = append(templates, l)
		}
	}
	template := pick(g, templates...)
	var all, full []*list
	for _, l := range g.w.lists {
		if l.list == template {
			if all = append(all, l); len(l.rows) > 0 {
				full = append(full, l)
			}
		}
	}
	if len(full) > 0 && !g.oneIn(4) {
		return pick(g, full...)
	}
	return pick(g, all...)
}

const elsewhere = "a parent that is not there"

// path is the list's own, or once in a while one of a parent that is not there,
// or not under this account.
func (g *Generator) path(l *list) string {
	if !g.oneIn(30) || len(l.list.Template().Vars()) == 0 {
		return l.path
	}
	parts := strings.Split(l.path, "/")
	for at, seg := range l.list.Template().Segments() {
		i := at + 1 // the path begins with a slash
		if !seg.HasLeadingVar() || g.oneIn(2) {
			continue
		}
		g.why = elsewhere
		if accounts := g.w.accounts(); parts[i] == accounts[0] && len(accounts) > 1 && g.oneIn(2) {
			parts[i] = accounts[1]
			continue
		}
		parts[i] = parts[i][:2] + fmt.Sprintf("%032x", g.rng.Uint64())
	}
	return strings.Join(parts, "/")
}

// untold reports whether the records of another account's list do not say so.
func (g *Generator) untold(l *list) bool {
	parts, template := strings.Split(l.path, "/"), l.list.Template()
	for i, seg := range template.Segments() {
		if !seg.HasLeadingVar() {
			continue
		}
		name := g.w.src.Spec.VarFields[seg.Name]
		if l.kind.Field(name) == nil && parts[i+1] != g.w.src.User && len(template.Vars()) == 1 {
			return true
		}
	}
	return false
}

// paging draws size, page and token.
func (g *Generator) paging(l *list) (q understudy.Query) {
	p := g.w.src.Spec.PagingOf(l.list)
	if !g.oneIn(5) {
		size := pick(g, "1", "2", "3", "5", "7", "20", "50", "51", strconv.Itoa(p.Max), strconv.Itoa(1+g.rng.IntN(p.Max)))
		if g.oneIn(20) {
			size = pick(g, "0", "-1", "", "x", "1e3", " 5", "5 ", "007", "٣", "50.0", strconv.Itoa(p.Max+1), "4294967297", "99999999999999999999")
		}
		q = append(q, g.param(p.Size, size))
	}
	if g.oneIn(4) {
		page := pick(g, "0", "1", "2", "3", "17")
		if g.oneIn(10) {
			page = pick(g, "-1", "", "x", "1000000", "99999999999", "01", "1 ")
		}
		q = append(q, g.param(p.Page, page))
		if g.oneIn(30) {
			q = append(q, g.param(p.Page, pick(g, "0", "1", "x")))
		}
	}
	if g.oneIn(4) {
		q = append(q, g.param(p.Tokens[0], g.token(l)))
	}
	return q
}

// param is a parameter with a value; without one it may be bare.
func (g *Generator) param(name, value string) understudy.Param {
	return understudy.Param{Name: name, Value: value, Bare: value == "" && g.oneIn(2)}
}

// token draws one of upstream's form.
func (g *Generator) token(l *list) string {
	head := pick(g, "PA", "PA", "PB")
	if len(l.kind.ID) > 1 {
		g.why = "tokens whose form is not known"
	}
	if g.oneIn(12) {
		g.unknown()
		return pick(g, "", "P", "PA", "PB", "PC", "X", "pa", head+l.kind.Name, head+strings.Repeat("0", 34), "AP"+"MQ==")
	}
	if g.oneIn(15) { // of another kind
		for _, h := range g.w.kinds {
			if h.kind != l.kind && len(h.order) > 0 && len(h.kind.ID) == 1 {
				g.unknown()
				return head + h.order[0]
			}
		}
	}
	order := g.w.kinds[l.kind.Name].order
	if len(order) == 0 || g.oneIn(20) || g.why == elsewhere {
		g.unknown()
		prefix := pick(g, append(l.kind.Prefixes, "ZZ")...)
		return head + prefix + fmt.Sprintf("%016x%016x", g.rng.Uint64(), g.rng.Uint64())
	}
	if len(l.rows) > 0 && !g.oneIn(5) {
		return head + l.rows[g.rng.IntN(len(l.rows))].ID
	}
	id := order[g.rng.IntN(len(order))] // of any list, or gone
	if h := g.w.kinds[l.kind.Name]; h.now[id] == nil && !g.w.near(l, h.was[id]) || !g.w.beside(l, h.was[id]) {
		g.unknown() // its owner or its place is not known for sure
		return head + strings.Repeat("0", 34)
	}
	return head + id
}

// unknown notes that the request may name what was never seen.
func (g *Generator) unknown() {
	if g.why == "" {
		g.why = "a token that nobody has seen"
	}
}

// encode writes a name or value in one of the ways to write it.
func (g *Generator) encode(text string, name bool) string {
	var b strings.Builder
	much := g.oneIn(8)
	for i := range len(text) {
		c := text[i]
		plain := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte("-_.~", c) >= 0
		open := strings.IndexByte(":,*/<>!'()@", c) >= 0 || c == '=' && !name
		switch {
		case c == ' ' && g.oneIn(2):
			b.WriteByte('+')
		case plain && !(much && g.oneIn(3)), open && g.oneIn(3):
			b.WriteByte(c)
		case g.oneIn(4):
			fmt.Fprintf(&b, "%%%02x", c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
