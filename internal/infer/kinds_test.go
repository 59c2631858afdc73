// Kinds: what is taken for the id of a record, and what is not.

package infer_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"understudy/internal/infer"
)

// listing is a document with a list of things whose rows have a schema, and more schemas.
func listing(row, schemas string) string {
	return `{"openapi":"3.1.0","servers":[{"url":"https://api.desk.example"}],"paths":{"/things":{"get":{"responses":{"200":{"content":
		{"application/json":{"schema":{"type":"object","properties":{"things":{"type":"array","items":` + row + `}}}}}}}}}},
		"components":{"schemas":{` + schemas + `}}}`
}

// TestAnIDBehindAnArrayIndexIsFound draws a row whose id stands in a part of another schema, beside a
// key that repeats.
func TestAnIDBehindAnArrayIndexIsFound(t *testing.T) {
	draft := drafted(t, listing(`{"allOf":[{"$ref":"#/components/schemas/Tag/allOf/0"},
		{"properties":{"thing_key":{"type":"string"},"key":{"type":"string"}}}]}`,
		`"Tag":{"allOf":[{"type":"object","properties":{"id":{"type":"string"}}}]}`))
	if !strings.Contains(string(draft.YAML), "id: [id]") {
		t.Errorf("the draft has another id:\n%s", draft.YAML)
	}
}

// TestKeysAreNoIDs draws rows with fields that are no name of a record: a key, and an id that may be
// null where nothing else may.
func TestKeysAreNoIDs(t *testing.T) {
	for _, row := range []string{
		`{"type":"object","properties":{"thing_key":{"type":"string"},"text":{"type":"string"}}}`,
		`{"type":"object","properties":{"key":{"type":"string"},"value":{"type":"string"}}}`,
		`{"type":"object","properties":{"id":{"type":["string","null"]},"text":{"type":"string"},"more":{"type":"string"}}}`,
	} {
		draft := drafted(t, listing(row, ""))
		if strings.Contains(string(draft.YAML), " id: [") {
			t.Errorf("%s: the draft has an id:\n%s", row, draft.YAML)
		}
		if doubts := strings.Join(draft.Unsure, "\n"); !strings.Contains(doubts, "kept as whole pages") {
			t.Errorf("%s: no doubt says that no records are kept: %s", row, doubts)
		}
	}
}

// TestIDsThatRepeatOrAreNullAreRefused draws from pages on which the id repeats or is null.
func TestIDsThatRepeatOrAreNullAreRefused(t *testing.T) {
	for rows, want := range map[string]bool{
		`{"id":"a"},{"id":"b"}`:      true,
		`{"id":"a"},{"id":"a"}`:      false,
		`{"id":"a"},{"id":null}`:     false,
		`{"id":"a"},{"text":"none"}`: false,
		`{"id":"a"},{"id":""}`:       false,
	} {
		ask := func(context.Context, string) (*infer.Answer, error) {
			return &infer.Answer{Status: http.StatusOK, Body: fmt.Appendf(nil, `{"data":[%s]}`, rows)}, nil
		}
		draft, err := infer.FromAnswers(t.Context(), []string{"https://api.desk.example/things"}, infer.Live{Ask: ask, Auth: "none"})
		if err != nil {
			t.Fatal(err)
		}
		if has := strings.Contains(string(draft.YAML), " id: ["); has != want {
			t.Errorf("%s: the draft has an id: %v, want %v", rows, has, want)
		}
		if refused := strings.Contains(strings.Join(draft.Unsure, "\n"), "id may be null or repeats"); refused == want {
			t.Errorf("%s: a doubt refuses the id: %v, want %v", rows, refused, !want)
		}
	}
}
