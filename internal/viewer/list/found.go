// The records that a search found: hits with highlighted words, facets, and links to other pages.

package list

import (
	"context"
	"errors"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/query"
	"understudy/internal/viewer/geomap"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/kit/geo"
	"understudy/spec"
)

// foundPage is the part of the search page that shows what a search found.
type foundPage struct {
	Hits     []foundHit
	Counts   counts // the facets and the number of records, if they were ready when the page began
	Parts    *page.Parts
	Notes    []string
	Chips    []chip
	Pages    pageLinks
	Export   []download
	Tables   []page.Table // the found records as one table for each kind, if the reader prefers tables; else nil
	Lists    []page.Link  // for each kind, a link to its found records as a list
	View     viewForm
	Map      *geomap.Map // the records around the point of a near:; nil if there is none
	SumsHref string      // the address of the page with sums over the found records; empty if there are no sums
	Select   selection
}

// foundHit is one found record as the search page shows it.
type foundHit struct {
	kind      *plan.Kind
	Kind      string
	Title     page.Cell // the id of the record with a link to its page
	State     page.Cell
	When      page.Cell
	Facts     []page.Cell
	NoteTags  []page.Cell // labels for the notes on the record
	Snippets  []snippet   // parts of the record with the found words highlighted, or the record's text if no words were searched
	IsExact   bool
	SelectBox template.HTML // the check box that selects the record
}

// snippet is a part of a field's value in which the found words are highlighted.
type snippet struct {
	Label string // the title of the field; empty if the text is clear without it
	Text  template.HTML
}

// find runs the search of the page. If the text of the search has a mistake, wrong is its position, which the page shows.
func (sv searchView) find() (out *foundPage, wrong *page.Pointer, err error) {
	counting := startCount(sv.q, sv.request.ask(), nil)
	first := sv.request.first()
	r, err := runSearch(sv.q, sv.request.ask(), sv.entry(), func(err error) error {
		if e := page.FindSyntaxError(err); e != nil {
			wrong = page.NewPointer(e)
		}
		return explainFailure(explainCursorError(err, sv.request.cursor, first.address("")))
	})
	if wrong != nil {
		return nil, wrong, nil
	}
	if err != nil {
		return nil, nil, err
	}
	p := &foundPage{Notes: noteFound(sv.q, r, nil, nil), Chips: sv.request.chips(sv.q)}
	hits := sv.q.Rights.Hits(sv.q.Ctx, r)
	p.Hits = sv.foundHits(hits)
	if r.Near != nil {
		p.Map = geomap.New(r.Near, placesOf(hits, p.Hits))
	}
	if len(p.Hits) > 0 {
		p.Select = newSelection(sv.q, sv.request.address(""), searchForm, sv.request.form, sv.q.Rights.CanSeeAnyNotes(sv.q.Clock.AsOf))
	}
	p.Counts, p.Parts = makeCounts(sv.q, "search", counting, "%s found", sv.searchFacets)
	p.Pages = sv.request.pages(r.Next)
	p.Export = newDownloads(first.address)
	p.Lists = sv.listLinks(p.Hits)
	view, err := sv.q.R.Cookie(viewCookie)
	p.View = viewForm{Table: err == nil && view.Value == viewTable, Back: sv.request.address("")}
	if p.View.Table {
		p.Tables = sv.tables(r)
	}
	return p, nil, nil
}

// runSearch runs a search and, before the result is shown, writes the found ids to the audit log. If the search
// fails, refused makes the error for the reader.
func runSearch(q *page.Exchange, ask query.SearchRequest, e understudy.AuditEntry, refused func(error) error) (*query.SearchResult, error) {
	var r *query.SearchResult
	err := q.ReadFirst(func(ctx context.Context) (err error) {
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
	if err := page.WriteAudit(q, e); err != nil {
		return nil, err
	}
	q.ShowsSearch = true
	return r, nil
}

func (sv searchView) entry() understudy.AuditEntry {
	e := understudy.AuditEntry{Action: understudy.ActionSearch, Source: sv.request.source,
		Values: append([]string{sv.request.text}, sv.request.narrow...)}
	if len(sv.request.kinds) == 1 {
		e.Kind = sv.request.kinds[0]
	}
	return e
}

func (sv searchView) searchFacets(r *query.SearchResult) []facet {
	return makeFacets(sv.q, r, nil, func(_ query.SearchFacet, v query.SearchValue) (string, bool) {
		at, set := sv.request.first(), false
		at.narrow, set = toggleTerm(sv.request.narrow, v.Term)
		return at.address(""), set
	})
}

// explainCursorError returns err, or if err means that the cursor belongs to another role or search, an error with a
// link to the first page.
func explainCursorError(err error, cursor, first string) error {
	if cursor == "" || !errors.Is(err, understudy.ErrInvalid) || page.FindSyntaxError(err) != nil {
		return err
	}
	return &page.Problem{
		Title: "This page can't be opened", Hint: "Pages after the first belong to the search and the role that opened them. " +
			"Start from the first page.",
		Href: first, Link: "Go to the first page", Kind: understudy.ErrInvalid,
	}
}

// listLinks returns links to the found records of each kind as a list, which has columns and can be sorted.
func (sv searchView) listLinks(found []foundHit) []page.Link {
	var all []page.Link
	for _, h := range found {
		if k := h.kind; k.IsBrowsable() && k.HasRecords() &&
			!slices.ContainsFunc(all, func(l page.Link) bool { return l.Text == plan.UpperFirst(k.Spec.Title) }) {
			terms := slices.DeleteFunc(slices.Clone(sv.request.narrow), func(n string) bool { return n == "kind:"+k.Spec.Name })
			if text := joinConditions(sv.request.text, terms); text != "" {
				all = append(all, page.Link{Href: k.Href + plan.WithQuery(understudy.Query{{Name: paramText, Value: text}}),
					Text: plan.UpperFirst(k.Spec.Title)})
			}
		}
	}
	return all
}

// placesOf returns the records that have coordinates.
func placesOf(hits []page.Hit, shown []foundHit) (all []geomap.Place) {
	for i, h := range hits {
		latitude, longitude := h.Kind.Spec.Coordinates()
		lat, err := strconv.ParseFloat(h.Row.Field(latitude).Text, 64)
		lon, err2 := strconv.ParseFloat(h.Row.Field(longitude).Text, 64)
		if at := (geo.Point{Lat: lat, Lon: lon}); err == nil && err2 == nil && at.IsValid() {
			all = append(all, geomap.Place{At: at, Title: shown[i].Title.Text, Href: shown[i].Title.Href})
		}
	}
	return all
}

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

// tables returns the found records as one table for each kind. The tables are in the order in which the kinds first occur.
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
		if sv.request.form == formSelect {
			t.AddSelectBoxes(k, rows[k])
		}
		all = append(all, t)
	}
	return all
}

// maxFacts is the maximum number of values that are shown beside a hit.
const maxFacts = 5

// foundHit returns one found record as the search page shows it: the found words, the id, the state and the time.
func (sv searchView) foundHit(s *page.CellContext, h page.Hit) foundHit {
	k := h.Kind
	out := foundHit{kind: k, Kind: plan.UpperFirst(k.Spec.Singular), IsExact: h.SearchHit.Exact, NoteTags: s.NoteTags(h.Row)}
	if len(sv.q.V.Planned) > 1 {
		out.Kind = k.Source.Spec.Title + " " + k.Spec.Singular
	}
	out.Title = page.Cell{Text: page.ShortID(h.SearchHit.ID), Href: s.RecordAddress(h.Row), Hint: h.SearchHit.ID}
	if pick := page.SelectName(k, h.SearchHit.ID); pick != "" && sv.request.form == formSelect {
		out.SelectBox = page.SelectBox(pick, k.Spec.Singular+" "+out.Title.Text)
	}
	if h.SearchHit.ID == "" {
		out.Title.Text = "your role can't see its id"
	}
	columns := sv.q.Rights.ColumnsOf(k)
	state := slices.IndexFunc(columns, func(c *plan.Column) bool {
		return c.Shape == plan.Pill && h.Row.Field(c.Spec.Name).State == access.Seen
	})
	told := map[string]bool{}
	for _, piece := range h.SearchHit.Snippets {
		// the page shows the state of every record, so a snippet with the state would repeat it
		if told[piece.Field] = true; state < 0 || piece.Field != columns[state].Spec.Name {
			out.Snippets = append(out.Snippets, newSnippet(k, h.Row, piece))
		}
	}
	words := len(out.Snippets) > 0
	for i, c := range columns {
		value := s.Cell(c, h.Row, true)
		value.Shorten(c)
		switch of := h.Row.Field(c.Spec.Name).State; {
		case c.Spec.Name == k.Spec.Clock:
			out.When = value
		case i == state:
			out.State = value
		case k.CountedIn[c.Spec.Name] != nil && value.Text == "0": // a count of 0 records below this record is not worth showing
		case c.IsID, told[c.Spec.Name], of != access.Seen && of != access.Masked, value.Text == "—":
		case c.Shape == plan.Prose:
			if !words && value.Prose {
				out.Snippets = append(out.Snippets, snippet{Text: value.Value()})
				words = true
			}
		case len(out.Facts) < maxFacts:
			if c.Spec.Show == spec.ShowDirection { // words for a direction, such as "outbound", need no title
				value.Label = ""
			}
			out.Facts = append(out.Facts, value)
		}
	}
	return out
}

// maxLeadBytes is the maximum number of bytes that a snippet shows before the first found word.
const maxLeadBytes = 60

// newSnippet returns the part of a field's value around the found words. It decodes the value if it is form-encoded.
func newSnippet(k *plan.Kind, row access.Row, piece query.SearchSnippet) snippet {
	c := k.ByField[piece.Field]
	if c == nil {
		return snippet{plan.UpperFirst(plan.Spell(piece.Field)), highlight(piece)}
	}
	label := c.Heading
	if c.Shape == plan.Prose {
		label = ""
	}
	whole := row.Field(c.Spec.Name).Text
	if from := strings.Index(whole, piece.Text); c.Spec.Show == spec.ShowForm && from >= 0 {
		if text, places := plan.DecodeFormWithPlaces(whole, " · "); places != nil {
			begin := places[from]
			piece.Text = text[begin:places[from+len(piece.Text)]]
			piece.Marks = slices.Clone(piece.Marks)
			for i, m := range piece.Marks {
				piece.Marks[i] = [2]int{places[from+m[0]] - begin, places[from+m[1]] - begin}
			}
		}
	}
	if len(piece.Marks) > 0 && piece.Marks[0][0] > maxLeadBytes {
		from := piece.Marks[0][0] - maxLeadBytes
		for !utf8.RuneStart(piece.Text[from]) {
			from++
		}
		piece.Text, piece.Marks, piece.Before = piece.Text[from:], slices.Clone(piece.Marks), true
		for i := range piece.Marks {
			piece.Marks[i][0], piece.Marks[i][1] = piece.Marks[i][0]-from, piece.Marks[i][1]-from
		}
	}
	return snippet{label, highlight(piece)}
}

// highlight returns a snippet as HTML with its found words in <mark> tags.
func highlight(s query.SearchSnippet) template.HTML {
	var b strings.Builder
	if s.Before {
		b.WriteString("…")
	}
	page.EscapeMarked(&b, s.Text, s.Marks)
	if s.After {
		b.WriteString("…")
	}
	return template.HTML(b.String()) // this is safe HTML, because page.EscapeMarked escapes all text
}
