// Found: what a search found: hits with their words marked, counts that narrow
// it down, and the way on.

package list

import (
	"context"
	"errors"
	"html/template"
	"slices"
	"strings"
	"unicode/utf8"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/query"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/spec"
)

// foundPage is what search.html shows of a search.
type foundPage struct {
	Hits   []foundHit
	Counts counts // those that are there when the page begins
	Parts  *page.Parts
	Notes  []string
	Chips  []chip
	Pages  pageLinks
	Export []download
	Tables []page.Table // the hits in tables, one for each kind, for a reader who chose them
	Lists  []page.Link  // the same as lists, by kind
	View   viewForm
	Sums   string // what was found, added up; "": nothing can be
	Select selection
}

// foundHit is one record found.
type foundHit struct {
	kind    *plan.Kind
	Kind    string
	Title   page.Cell // leads to the record
	State   page.Cell
	When    page.Cell
	Facts   []page.Cell
	Written []page.Cell // of the notes on it
	Pieces  []snippet   // the words that were found; without any, the record's text
	Exactly bool
	Pick    template.HTML // the box that selects it
}

// snippet is a piece of a field with the words in it marked.
type snippet struct {
	Label string // "" where the text speaks for itself
	Text  template.HTML
}

// find searches for the page; wrong is a mistake in the query, which the page
// then points at.
func (sv searchView) find() (out *foundPage, wrong *page.Pointer, err error) {
	counting := startCount(sv.q, sv.s.ask(), nil)
	first := sv.s.first()
	r, err := runSearch(sv.q, sv.s.ask(), sv.entry(), func(err error) error {
		if e := page.SyntaxOf(err); e != nil {
			wrong = page.PointAt(e)
		}
		return searchFailed(lostPlace(err, sv.s.cursor, first.address("")))
	})
	if wrong != nil {
		return nil, wrong, nil
	}
	if err != nil {
		return nil, nil, err
	}
	p := &foundPage{Notes: noteFound(sv.q, r, nil, nil), Chips: sv.s.chips(sv.q)}
	p.Hits = sv.foundHits(sv.q.Rights.Hits(sv.q.Ctx, r))
	if len(p.Hits) > 0 {
		p.Select = newSelection(sv.q, sv.s.address(""), searchForm, sv.s.form, sv.q.Rights.SeesAnyNotes(sv.q.Clock.AsOf))
	}
	p.Counts, p.Parts = makeCounts(sv.q, "search", counting, "%s found", sv.searchFacets)
	p.Pages = sv.s.pages(r.Next)
	p.Export = newDownloads(first.address)
	p.Lists = sv.asLists(p.Hits)
	view, err := sv.q.R.Cookie(viewCookie)
	p.View = viewForm{Table: err == nil && view.Value == viewTable, Back: sv.s.address("")}
	if p.View.Table {
		p.Tables = sv.tables(r)
	}
	return p, nil, nil
}

// runSearch finds records and lists them in an entry of the audit log, before they are shown. refused is the error of the
// page for one of the search.
func runSearch(q *page.Exchange, ask query.SearchRequest, e understudy.AuditEntry, refused func(error) error) (*query.SearchResult, error) {
	var r *query.SearchResult
	err := q.First(func(ctx context.Context) (err error) {
		r, err = q.V.Options.Search.Find(ctx, q.Rights.Caller, ask)
		return err
	}, nil)
	if err != nil {
		return nil, refused(err)
	}
	e.Rows = len(r.Hits)
	for i := range r.Hits {
		e.IDs = append(e.IDs, r.Hits[i].ID)
	}
	if err := page.Audit(q, e); err != nil {
		return nil, err
	}
	q.Found = true
	return r, nil
}

// entry is the search in the audit log.
func (sv searchView) entry() understudy.AuditEntry {
	e := understudy.AuditEntry{Action: understudy.ActionSearch, Source: sv.s.source, Values: append([]string{sv.s.text}, sv.s.narrow...)}
	if len(sv.s.kinds) == 1 {
		e.Kind = sv.s.kinds[0]
	}
	return e
}

// searchFacets are what was counted of a search.
func (sv searchView) searchFacets(r *query.SearchResult) []facet {
	return makeFacets(sv.q, r, nil, func(_ query.SearchFacet, v query.SearchValue) (string, bool) {
		at, set := sv.s.first(), false
		at.narrow, set = toggled(sv.s.narrow, v.Term)
		return at.address(""), set
	})
}

// lostPlace is an error of a search that was to go on where another role was, or
// another search: it leads to the first page. Any other error stays.
func lostPlace(err error, cursor, first string) error {
	if cursor == "" || !errors.Is(err, understudy.ErrInvalid) || page.SyntaxOf(err) != nil {
		return err
	}
	return &page.Problem{
		Title: "This page cannot be opened", Hint: "A page after the first is for the role that came to it, and for the same search. " +
			"What yours finds begins on the first.",
		Href: first, Link: "Go to the first page", Kind: understudy.ErrInvalid,
	}
}

// asLists returns links to the same records as lists of one kind, which have columns and
// every order; of the kinds on the page.
func (sv searchView) asLists(found []foundHit) []page.Link {
	var all []page.Link
	for _, h := range found {
		if k := h.kind; k.Browsable() && k.Remembered() &&
			!slices.ContainsFunc(all, func(l page.Link) bool { return l.Text == plan.UpperFirst(k.Spec.Title) }) {
			terms := slices.DeleteFunc(slices.Clone(sv.s.narrow), func(n string) bool { return n == "kind:"+k.Spec.Name })
			if text := joinConditions(sv.s.text, terms); text != "" {
				all = append(all, page.Link{Href: k.Href + plan.WithQuery(understudy.Query{{Name: ownText, Value: text}}),
					Text: plan.UpperFirst(k.Spec.Title)})
			}
		}
	}
	return all
}

// foundHits draws the records found.
func (sv searchView) foundHits(hits []page.Hit) (all []foundHit) {
	sheets := map[*plan.Kind]*page.CellContext{}
	for _, h := range hits {
		sh := sheets[h.Kind]
		if sh == nil {
			sh = sv.q.CellContext(h.Kind, nil, nil)
			sheets[h.Kind] = sh
		}
		all = append(all, sv.foundHit(sh, h))
	}
	return all
}

// tables draws the records found in one table for each kind, in the order in which the kinds come.
func (sv searchView) tables(r *query.SearchResult) (all []page.Table) {
	var kinds []*plan.Kind
	rows := map[*plan.Kind][]access.Row{}
	for _, h := range sv.q.Rights.Hits(sv.q.Ctx, r) {
		if rows[h.Kind] == nil {
			kinds = append(kinds, h.Kind)
		}
		rows[h.Kind] = append(rows[h.Kind], h.Row)
	}
	for _, k := range kinds {
		t := sv.q.CellContext(k, nil, nil).Table(plan.UpperFirst(k.Spec.Title), sv.q.Rights.ColumnsOf(k), rows[k])
		if len(all) == 0 {
			t.ID = page.RowsID
		}
		if sv.s.form == formSelect {
			t.PickRows(k, rows[k])
		}
		all = append(all, t)
	}
	return all
}

// mostFacts is how many values stand beside a hit.
const mostFacts = 5

// foundHit draws one record: the words that were found, what it is, how it is, and when.
func (sv searchView) foundHit(s *page.CellContext, h page.Hit) foundHit {
	k := h.Kind
	out := foundHit{kind: k, Kind: plan.UpperFirst(k.Spec.One), Exactly: h.SearchHit.Exact, Written: s.Written(h.Row)}
	if len(sv.q.V.Planned) > 1 {
		out.Kind = k.Source.Spec.Title + " " + k.Spec.One
	}
	out.Title = page.Cell{Text: page.ShortID(h.SearchHit.ID), Href: s.RecordOf(h.Row), Hint: h.SearchHit.ID}
	if pick := page.PickName(k, h.SearchHit.ID); pick != "" && sv.s.form == formSelect {
		out.Pick = page.PickBox(pick, k.Spec.One+" "+out.Title.Text)
	}
	if h.SearchHit.ID == "" {
		out.Title.Text = "no id that your role shows"
	}
	columns := sv.q.Rights.ColumnsOf(k)
	state := slices.IndexFunc(columns, func(c *plan.Column) bool {
		return c.Shape == plan.Pill && h.Row.Field(c.Spec.Name).State == access.Seen
	})
	told := map[string]bool{}
	for _, piece := range h.SearchHit.Snippets {
		if told[piece.Field] = true; state < 0 || piece.Field != columns[state].Spec.Name { // the pill says that one
			out.Pieces = append(out.Pieces, foundIn(k, h.Row, piece))
		}
	}
	words := len(out.Pieces) > 0
	for i, c := range columns {
		value := s.Cell(c, h.Row, true)
		value.Shorten(c)
		switch of := h.Row.Field(c.Spec.Name).State; {
		case c.Spec.Name == k.Spec.Clock:
			out.When = value
		case i == state:
			out.State = value
		case k.CountedIn[c.Spec.Name] != nil && value.Text == "0": // nothing lies under it
		case c.IsID, told[c.Spec.Name], of != access.Seen && of != access.Masked, value.Text == "—":
		case c.Shape == plan.Prose:
			if !words && value.Prose {
				out.Pieces = append(out.Pieces, snippet{Text: value.Value()})
				words = true
			}
		case len(out.Facts) < mostFacts:
			if c.Spec.Show == spec.ShowDirection { // the word speaks for itself
				value.Label = ""
			}
			out.Facts = append(out.Facts, value)
		}
	}
	return out
}

// maxLead is how many bytes stand before the first word that was found: it shows where a line is cut.
const maxLead = 60

// foundIn draws the piece of a field in which words were found. A form-encoded field is decoded.
func foundIn(k *plan.Kind, row access.Row, piece query.SearchSnippet) snippet {
	c := k.ByField[piece.Field]
	if c == nil {
		return snippet{plan.UpperFirst(plan.Spell(piece.Field)), marked(piece)}
	}
	label := c.Heading
	if c.Shape == plan.Prose {
		label = ""
	}
	whole := row.Field(c.Spec.Name).Text
	if from := strings.Index(whole, piece.Text); c.Spec.Show == spec.ShowForm && from >= 0 {
		if text, places := plan.ReadFormPlaces(whole, " · "); places != nil {
			begin := places[from]
			piece.Text = text[begin:places[from+len(piece.Text)]]
			piece.Marks = slices.Clone(piece.Marks)
			for i, m := range piece.Marks {
				piece.Marks[i] = [2]int{places[from+m[0]] - begin, places[from+m[1]] - begin}
			}
		}
	}
	if len(piece.Marks) > 0 && piece.Marks[0][0] > maxLead {
		from := piece.Marks[0][0] - maxLead
		for !utf8.RuneStart(piece.Text[from]) {
			from++
		}
		piece.Text, piece.Marks, piece.Before = piece.Text[from:], slices.Clone(piece.Marks), true
		for i := range piece.Marks {
			piece.Marks[i][0], piece.Marks[i][1] = piece.Marks[i][0]-from, piece.Marks[i][1]-from
		}
	}
	return snippet{label, marked(piece)}
}

// marked is a snippet as HTML: its words between <mark>, everything else escaped.
func marked(s query.SearchSnippet) template.HTML {
	var b strings.Builder
	if s.Before {
		b.WriteString("…")
	}
	page.EscapeMarked(&b, s.Text, s.Marks)
	if s.After {
		b.WriteString("…")
	}
	return template.HTML(b.String()) // every text went through escape
}
