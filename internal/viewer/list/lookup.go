// Lookup: the records of a number that the caller types whole and is not shown.
//
//	form --POST, the number in the body--> 303 --GET /-/lookup/TOKEN--> records, masked
//
// The number stands in no address: a token stands for it. So no log, history or Referer has it.

package list

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
)

const (
	lookupPath   = page.ControlPrefix + "lookup"
	lookupNumber = "number" // the field of the form; the box of searches has searchText
)

// lookupPage is what lookup.html shows.
type lookupPage struct {
	In    string     // the sources that are looked in
	Wrong string     // what is wrong with the number that was sent
	Found *foundPage // nil: no number was sent
	Turns any        // the calls and messages among what was found; nil: there are none
	Rest  []foundHit // what else was found
}

// Conversation orders the calls and messages among the records of a number as a conversation, oldest first. talk is what the
// template of that name shows, nil: nothing; rest are the other records.
type Conversation func(q *page.Exchange, number string, hits []page.Hit) (talk any, rest []page.Hit)

// lookupList is the field of a list's form that names the list.
const lookupList = "list"

// LookupRoutes are the form that takes a number, and what was found.
func LookupRoutes(talk Conversation) []page.Route {
	return []page.Route{
		{Pattern: "GET " + lookupPath, Handler: serveLookup},
		{Pattern: "POST " + lookupPath, Handler: sendLookup},
		{Pattern: "GET " + lookupPath + "/{token}", Handler: func(q *page.Exchange) error { return serveLookedUp(q, talk) }},
	}
}

// mayLookUp returns nil if the caller may look up numbers here.
func mayLookUp(q *page.Exchange) error {
	switch {
	case q.Rights.Looks():
		return nil
	case q.V.Options.Search == nil:
		return page.NotFound("No number can be looked up here", "This server keeps no index.", "/")
	case q.V.Options.Audit == nil:
		return page.NotFound("No number can be looked up here", "Lookups have to be listed, and this server keeps no audit log.", "/")
	}
	if q.Rights.ViewsAs() {
		return &page.Problem{Title: "Numbers are looked up by people of the role alone", Kind: understudy.ErrForbidden,
			Hint: "You are viewing as " + q.Rights.Caller.Role() + "."}
	}
	return &page.Problem{Title: "Your role can't look up numbers", Kind: understudy.ErrForbidden,
		Hint: "An administrator can add lookup to the role's do list."}
}

// serveLookup shows the form.
func serveLookup(q *page.Exchange) error {
	if err := mayLookUp(q); err != nil {
		return err
	}
	if q.R.URL.RawQuery != "" {
		return page.BadRequest("This page takes no parameters", "Type the number into its box: an address is kept in logs.", nil)
	}
	return renderLookup(q, http.StatusOK, &lookupPage{})
}

// sendLookup takes a number and leads to its records. Words that were typed into the box of searches
// go on to the search.
func sendLookup(q *page.Exchange) error {
	if err := mayLookUp(q); err != nil {
		return err
	}
	if err := q.R.ParseForm(); err != nil || q.R.URL.RawQuery != "" {
		return page.BadRequest("This form cannot be read", "Send the number in the form of the page Find a caller.", nil)
	}
	form := q.R.PostForm
	text := strings.TrimSpace(form.Get(searchText) + form.Get(ownText))
	switch {
	case !form.Has(searchText) && !form.Has(lookupList):
		text = strings.TrimSpace(form.Get(lookupNumber))
	case resemblesNumber(text):
	case holdsNumber.MatchString(understudy.PlainNumber(text)):
		return &page.Problem{Title: "A number is looked up by itself", Kind: understudy.ErrInvalid, Href: lookupPath, Link: "Find a caller",
			Hint: "Type the number alone. A search has what is typed in its address, and a number that your role does not show must not " +
				"stand there."}
	default:
		form.Del(lookupNumber)
		to := "/search"
		if form.Has(lookupList) {
			to, _, _ = strings.Cut(page.LocalPath(form.Get(lookupList)), "?")
			form.Del(lookupList)
		}
		q.GoBack(to+"?"+form.Encode(), "")
		return nil
	}
	number := understudy.ReadPhone(text)
	if !number.Country {
		wrong := "Write the whole number, with + and the country's code, as in +15551234567. "
		if strings.HasPrefix(number.Digits, "0") {
			wrong += "The 0 that a number begins with inside a country is left out: 020 7946 0018 in the United Kingdom is +44 20 7946 0018. "
		}
		return renderLookup(q, http.StatusBadRequest, &lookupPage{Wrong: wrong + "A part of a number is not looked up. " +
			"An id that is digits alone is found with id: before it."})
	}
	for _, s := range q.Rights.LooksIn() {
		if wait := q.V.Options.Lookups[s.Name].Take(q.Clock.Start); wait > 0 {
			return refuseLookup(q, s, "+"+number.Digits, wait)
		}
	}
	q.GoBack(lookupPath+"/"+page.SealNumber(q, "+"+number.Digits), "")
	return nil
}

// holdsNumber is a number with its country's code in a longer text.
var holdsNumber = regexp.MustCompile(`\+([ ().\-/]*[0-9]){7}`)

// resemblesNumber reports whether a text in the box of searches is meant as a phone number.
func resemblesNumber(text string) bool {
	digits, plus, ok := page.Dialled(text)
	return ok && (plus || len(digits) >= understudy.LeastPhone) || understudy.ReadPhone(text).Country
}

// refuseLookup lists a number that came too soon after others, and says when the next may come.
func refuseLookup(q *page.Exchange, s *plan.Source, number string, wait time.Duration) error {
	e := understudy.AuditEntry{Action: understudy.ActionSearch, What: "lookup", Source: s.Name, Values: []string{number},
		Status: http.StatusTooManyRequests}
	if err := page.Audit(q, e); err != nil {
		return err
	}
	return &page.Problem{Title: "Too many numbers are being looked up", Href: lookupPath, Link: "Find a caller",
		Kind: errors.Join(understudy.ErrTooMany, &understudy.RateError{Wait: wait}),
		Hint: "Everybody here shares one limit, so that nobody finds numbers by guessing. Try again in a few seconds."}
}

// serveLookedUp shows the records of the number that a token stands for.
func serveLookedUp(q *page.Exchange, talk Conversation) error {
	if err := mayLookUp(q); err != nil {
		return err
	}
	number, ok := page.OpenNumber(q, q.R.PathValue("token"))
	if !ok {
		return page.NotFound("This address is no longer good",
			"It is good for the session that made it, and for half an hour at most. Look up the number again.", lookupPath)
	}
	s, err := readSearchRequest(q)
	if err != nil {
		return err
	}
	here := &searchRequest{looked: q.R.PathValue("token"), cursor: s.cursor, back: s.back}
	if s.cursor, s.back = "", nil; !s.plain() || s.text != "" || s.sort != "" {
		return page.BadRequest("These records cannot be narrowed", "The records of a number come newest first, all of them.", nil)
	}
	return showLookedUp(q, number, here, talk)
}

// showLookedUp finds the records of a number, from a cursor on.
func showLookedUp(q *page.Exchange, number string, s *searchRequest, talk Conversation) error {
	e := understudy.AuditEntry{Action: understudy.ActionSearch, What: "lookup", Values: []string{number}}
	first := s.first()
	r, err := runSearch(q, query.SearchRequest{Number: number, Cursor: s.cursor}, e, func(err error) error {
		return searchFailed(lostPlace(err, s.cursor, first.address("")))
	})
	if err != nil {
		return err
	}
	view := searchView{q, s}
	p := &lookupPage{Found: &foundPage{Hits: view.foundHits(q.Rights.Hits(q.Ctx, r)), Notes: r.Notes}}
	out, rest := p.Found, []page.Hit(nil)
	p.Turns, rest = talk(q, number, q.Rights.Hits(q.Ctx, r))
	p.Rest = view.foundHits(rest)
	if r.Unheld != "" {
		out.Notes = append(out.Notes, plan.UpperFirst(r.Unheld)+".")
	}
	out.Pages = s.pages(r.Next)
	return renderLookup(q, http.StatusOK, p)
}

func renderLookup(q *page.Exchange, status int, p *lookupPage) error {
	var titles []string
	for _, s := range q.Rights.LooksIn() {
		titles = append(titles, s.Spec.Title)
	}
	p.In = strings.Join(titles, ", ")
	return q.Render(status, "lookup", "Find a caller", p)
}
