// An API made up for stories: books and loans, bearer tokens, every way of
// paging, covers.

package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdLibrary serves the made-up API and sets $library_upstream.
func cmdLibrary(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: library")
	}
	srv := httptest.NewServer(newLibrary())
	ts.Defer(srv.Close)
	ts.Setenv("library_upstream", srv.URL)
}

const (
	allBooks = 25
	allLoans = 12
)

type book struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Year  int    `json:"year"`
	Cover string `json:"cover_url"` // absolute, under the address asked at
}

// loan has no id of its own: its branch and number name it.
type loan struct {
	Branch string `json:"branch"`
	Number int    `json:"number"`
	Book   string `json:"book"`
}

func newLibrary() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v3/books", serveBooks)
	mux.HandleFunc("GET /v3/books/{id}/cover", serveCover)
	mux.HandleFunc("GET /v3/shelves", serveShelves)
	mux.HandleFunc("GET /v3/cards/{way}", serveCards)
	mux.HandleFunc("GET /v3/branches/{branch}/loans", serveLoans)
	mux.HandleFunc("GET /v3/branches/{branch}/loans/{number}", serveLoan)
	var refresh atomic.Int64 // exchanges; each refresh token is good for one
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/oauth/token" {
			user, pass, _ := r.BasicAuth()
			if n := refresh.Load(); r.PostFormValue("refresh_token") != fmt.Sprintf("refresh-%d", n) || user != "front" || pass != "clientsecret" {
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprint(w, `{"error":"invalid_grant"}`)
				return
			}
			fmt.Fprintf(w, `{"access_token":"librarytoken","expires_in":3600,"refresh_token":"refresh-%d"}`, refresh.Add(1))
			return
		}
		if r.Header.Get("Authorization") != "Bearer librarytoken" && r.URL.Query().Get("api_key") != "librarytoken" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"problem":"who?","status":401}`)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func number(r *http.Request, name string, otherwise int) int {
	if n, err := strconv.Atoi(r.URL.Query().Get(name)); err == nil {
		return n
	}
	return otherwise
}

func serveBooks(w http.ResponseWriter, r *http.Request) {
	limit, begin := number(r, "limit", 10), 0
	if after := r.URL.Query().Get("after"); after != "" {
		_, _ = fmt.Sscanf(after, "book-%d", &begin)
		begin++
	}
	books := []book{}
	for i := begin; i < min(begin+limit, allBooks); i++ {
		id := fmt.Sprintf("book-%d", i)
		books = append(books, book{id, fmt.Sprintf("Volume %d", i), 1900 + i, "http://" + r.Host + "/v3/books/" + id + "/cover"})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"books": books, "more": begin+limit < allBooks})
}

func serveCover(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "image/gif")
	fmt.Fprint(w, "GIF89a, the cover of ", r.PathValue("id"))
}

// serveLoans cuts its list in another way: the link to the next page is
// absolute and stands inside an object.
func serveLoans(w http.ResponseWriter, r *http.Request) {
	page, branch := number(r, "page", 1), r.PathValue("branch")
	loans := []loan{}
	for n := 5*page - 4; n <= min(5*page, allLoans); n++ {
		loans = append(loans, loan{branch, n, fmt.Sprintf("book-%d", n)})
	}
	var next any
	if 5*page < allLoans {
		query := r.URL.Query() // it repeats what it was asked with, a key too
		query.Set("page", strconv.Itoa(page+1))
		next = fmt.Sprintf("http://%s%s?%s", r.Host, r.URL.Path, query.Encode())
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{"loans": loans}, "links": map[string]any{"next": next}})
}

// serveShelves says in a header where its list goes on, not in the body.
func serveShelves(w http.ResponseWriter, r *http.Request) {
	page := number(r, "page", 1)
	links := fmt.Sprintf(`<http://%s/v3/shelves?page=1>; rel="first", <http://%[1]s/v3/shelves?page=3>; rel="last"`, r.Host)
	if page < 3 {
		links = fmt.Sprintf(`<http://%s/v3/shelves?page=%d>; rel="next", `, r.Host, page+1) + links
	}
	if page > 1 {
		links = fmt.Sprintf(`<http://%s/v3/shelves?page=%d>; rel="prev", `, r.Host, page-1) + links
	}
	w.Header().Set("Link", links)
	fmt.Fprintf(w, `[{"id":"shelf-%d"},{"id":"shelf-%d"}]`, 2*page-1, 2*page)
}

const allCards = 43

// serveCards cuts one list in the way that is asked for, in pages of ten or fewer.
func serveCards(w http.ResponseWriter, r *http.Request) {
	size, from, way := min(number(r, "size", 10), 10), 0, r.PathValue("way")
	switch way {
	case "numbers":
		from = (number(r, "page", 1) - 1) * size
	case "offsets":
		from = number(r, "start", 0)
	case "tokens", "headers":
		token, _ := base64.URLEncoding.DecodeString(r.URL.Query().Get("token"))
		from, _ = strconv.Atoi(string(token))
	case "cursors":
		from = number(r, "after", 0)
		if before := number(r, "before", 0); before > 0 {
			from = max(0, before-1-size)
			size = before - 1 - from
		}
	}
	cards := []map[string]int{}
	for n := from + 1; n <= min(from+size, allCards); n++ {
		cards = append(cards, map[string]int{"id": n})
	}
	more, token := from+size < allCards, ""
	if number(r, "before", 0) > 0 {
		more = from > 0
	}
	if more {
		token = base64.URLEncoding.EncodeToString([]byte(strconv.Itoa(from + size)))
	}
	body := any(cards)
	switch way {
	case "headers":
		w.Header().Set("X-Next", token)
	case "offsets":
		body = map[string]any{"cards": cards, "total": allCards}
	case "tokens":
		body = map[string]any{"cards": cards, "page": map[string]any{"next": token}}
	case "cursors":
		body = map[string]any{"cards": cards, "more": more}
	}
	_ = json.NewEncoder(w).Encode(body)
}

// serveLoan knows a loan by its number, and the first of them as "oldest".
func serveLoan(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.PathValue("number"))
	if r.PathValue("number") == "oldest" {
		n, err = 1, nil
	}
	if err != nil || n < 1 || n > allLoans {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"problem":"no such loan","status":404}`)
		return
	}
	_ = json.NewEncoder(w).Encode(loan{r.PathValue("branch"), n, fmt.Sprintf("book-%d", n)})
}
