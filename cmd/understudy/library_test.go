// An API made up for one story: books, bearer tokens, cursor paging.

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdLibrary serves the made-up API and sets $library_upstream.
func cmdLibrary(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: library")
	}
	srv := httptest.NewServer(http.HandlerFunc(serveBooks))
	ts.Defer(srv.Close)
	ts.Setenv("library_upstream", srv.URL)
}

const allBooks = 25

type book struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Year  int    `json:"year"`
}

func serveBooks(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.Header.Get("Authorization") != "Bearer librarytoken" {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"problem":"who?","status":401}`)
		return
	}
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil {
		limit = 10
	}
	begin := 0
	if after := r.URL.Query().Get("after"); after != "" {
		_, _ = fmt.Sscanf(after, "book-%d", &begin)
		begin++
	}
	books := []book{}
	for i := begin; i < min(begin+limit, allBooks); i++ {
		books = append(books, book{fmt.Sprintf("book-%d", i), fmt.Sprintf("Volume %d", i), 1900 + i})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"books": books, "more": begin+limit < allBooks})
}
