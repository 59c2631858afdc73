// Lookups: the records of a phone number that the role hides and the caller knows.
//
//	form --POST, the number in the body--> 303 --GET /-/lookup/TOKEN--> records, masked
//
// The number is in no address, where logs, histories and Referer headers would have it. A token stands for it.

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
	lookupPath        = page.ControlPrefix + "lookup"
	lookupNumberField = "number" // the form field with the number to look up; the form of the search box uses searchText
)

// lookupPage is the data of the template lookup.html.
type lookupPage struct {
	Sources   string     // the titles of the sources in which the number is looked up
	Mistake   string     // a sentence that says what is wrong with the number; empty if nothing is
	Found     *foundPage // the records with the number; nil if no number was sent
	Messages  any        // the calls and messages with the number, as a conversation; nil if there are none
	OtherHits []foundHit // the records with the number that are no calls or messages
}

// Conversation divides the records of a number. talk is the data of the template "talk" with the calls and messages,
// oldest first, or nil if there are none. rest has all other records.
type Conversation func(q *page.Exchange, number string, hits []page.Hit) (talk any, rest []page.Hit)

// lookupListField is the form field with the address of the list whose form was sent.
const lookupListField = "list"

// LookupRoutes returns the routes of the lookup form and of its results.
func LookupRoutes(talk Conversation) []page.Route {
	return []page.Route{
		{Pattern: "GET " + lookupPath, Handler: serveLookup},
		{Pattern: "POST " + lookupPath, Handler: sendLookup},
		{Pattern: "GET " + lookupPath + "/{token}", Handler: func(q *page.Exchange) error { return serveLookupResult(q, talk) }},
	}
}

func checkLookUp(q *page.Exchange) error {
	switch {
	case q.Rights.CanLookUp():
		return nil
	case q.V.Options.Search == nil:
		return page.NewNotFound("Number lookup is not available here", "This server has no search index.", "/")
	case q.V.Options.Audit == nil:
		return page.NewNotFound("Number lookup is not available here", "Lookups must be recorded, and this server has no audit log.", "/")
	}
	if q.Rights.IsViewingAs() {
		return &page.Problem{Title: "Only people who have this role can look up numbers", Kind: understudy.ErrForbidden,
			Hint: "You are viewing as " + q.Rights.Caller.Role() + "."}
	}
	return &page.Problem{Title: "Your role can't look up numbers", Kind: understudy.ErrForbidden,
		Hint: "An administrator can allow it: add lookup to the role's do list."}
}

func serveLookup(q *page.Exchange) error {
	if err := checkLookUp(q); err != nil {
		return err
	}
	if q.R.URL.RawQuery != "" {
		return page.NewBadRequest("This page takes no parameters", "Type the number into the box, because addresses appear in logs.", nil)
	}
	return renderLookup(q, http.StatusOK, &lookupPage{})
}

// sendLookup reads a phone number from a form and redirects to the records of the number. If the text of a search box
// is no phone number, it redirects to the search.
func sendLookup(q *page.Exchange) error {
	if err := checkLookUp(q); err != nil {
		return err
	}
	if err := q.R.ParseForm(); err != nil || q.R.URL.RawQuery != "" {
		return page.NewBadRequest("This form is not valid", "Use the form of the page Find a caller.", nil)
	}
	form := q.R.PostForm
	text := strings.TrimSpace(form.Get(searchText) + form.Get(paramText))
	switch {
	case !form.Has(searchText) && !form.Has(lookupListField):
		text = strings.TrimSpace(form.Get(lookupNumberField))
	case isLikeNumber(text):
	case numberPattern.MatchString(understudy.NormalizeNumber(text)):
		return &page.Problem{Title: "Look up a number without other words", Kind: understudy.ErrInvalid, Href: lookupPath, Link: "Find a caller",
			Hint: "Type only the number. A search puts its text into its address, where a number that your role can't see must not " +
				"appear."}
	default:
		form.Del(lookupNumberField)
		to := "/search"
		if form.Has(lookupListField) {
			to, _, _ = strings.Cut(page.LocalPath(form.Get(lookupListField)), "?")
			form.Del(lookupListField)
		}
		q.RedirectBack(to+"?"+form.Encode(), "")
		return nil
	}
	number := understudy.ParsePhone(text)
	if !number.HasCountryCode {
		wrong := "Write the whole number, with + and the country code, like +15551234567. "
		if strings.HasPrefix(number.Digits, "0") {
			wrong += "Leave out the 0 at the start of a national number: 020 7946 0018 in the United Kingdom is +44 20 7946 0018. "
		}
		return renderLookup(q, http.StatusBadRequest, &lookupPage{Mistake: wrong + "Parts of a number can't be looked up. " +
			"To find an id that has only digits, write id: before it."})
	}
	for _, s := range q.Rights.LookupSources() {
		if wait := q.V.Options.Lookups[s.Name].Take(q.Clock.Start); wait > 0 {
			return refuseLookup(q, s, "+"+number.Digits, wait)
		}
	}
	q.RedirectBack(lookupPath+"/"+page.SealNumber(q, "+"+number.Digits), "")
	return nil
}

// numberPattern matches a text that contains a phone number with a country code.
var numberPattern = regexp.MustCompile(`\+([ ().\-/]*[0-9]){7}`)

// isLikeNumber reports whether somebody who types this text into the search box means a phone number.
func isLikeNumber(text string) bool {
	digits, plus, ok := page.ParseDialled(text)
	return ok && (plus || len(digits) >= understudy.MinPhoneDigits) || understudy.ParsePhone(text).HasCountryCode
}

// refuseLookup writes to the audit log that a lookup exceeded the limit. It returns an error that says how long to wait.
func refuseLookup(q *page.Exchange, s *plan.Source, number string, wait time.Duration) error {
	e := understudy.AuditEntry{Action: understudy.ActionSearch, What: "lookup", Source: s.Name, Values: []string{number},
		Status: http.StatusTooManyRequests}
	if err := page.WriteAudit(q, e); err != nil {
		return err
	}
	return &page.Problem{Title: "Too many numbers are being looked up", Href: lookupPath, Link: "Find a caller",
		Kind: errors.Join(understudy.ErrTooMany, &understudy.RateError{Wait: wait}),
		Hint: "Everybody here shares one limit, so that nobody finds numbers by guessing. Try again in a few seconds."}
}

// serveLookupResult shows the records of the phone number whose token is in the address.
func serveLookupResult(q *page.Exchange, talk Conversation) error {
	if err := checkLookUp(q); err != nil {
		return err
	}
	number, ok := page.OpenNumber(q, q.R.PathValue("token"))
	if !ok {
		return page.NewNotFound("This link has expired",
			"It works for 30 minutes, in the session that made it. Look up the number again.", lookupPath)
	}
	s, err := readSearchRequest(q)
	if err != nil {
		return err
	}
	here := &searchRequest{lookupToken: q.R.PathValue("token"), cursor: s.cursor, back: s.back}
	if s.cursor, s.back = "", nil; !s.isPlain() || s.text != "" || s.sort != "" {
		return page.NewBadRequest("These records can't be filtered", "All records of a number are shown, newest first.", nil)
	}
	return showLookupResult(q, number, here, talk)
}

// showLookupResult shows a page of the records of a phone number.
func showLookupResult(q *page.Exchange, number string, s *searchRequest, talk Conversation) error {
	e := understudy.AuditEntry{Action: understudy.ActionSearch, What: "lookup", Values: []string{number}}
	first := s.first()
	r, err := runSearch(q, query.SearchRequest{Number: number, Cursor: s.cursor}, e, func(err error) error {
		return explainFailure(explainCursorError(err, s.cursor, first.address("")))
	})
	if err != nil {
		return err
	}
	view := searchView{q, s}
	p := &lookupPage{Found: &foundPage{Hits: view.foundHits(q.Rights.Hits(q.Ctx, r)), Notes: r.Notes}}
	out, rest := p.Found, []page.Hit(nil)
	p.Messages, rest = talk(q, number, q.Rights.Hits(q.Ctx, r))
	p.OtherHits = view.foundHits(rest)
	if r.Incomplete != "" {
		out.Notes = append(out.Notes, plan.UpperFirst(r.Incomplete)+".")
	}
	out.Pages = s.pages(r.Next)
	return renderLookup(q, http.StatusOK, p)
}

func renderLookup(q *page.Exchange, status int, p *lookupPage) error {
	var titles []string
	for _, s := range q.Rights.LookupSources() {
		titles = append(titles, s.Spec.Title)
	}
	p.Sources = strings.Join(titles, ", ")
	return q.Render(status, "lookup", "Find a caller", p)
}
