package postgres

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"understudy/internal/checktest"
	"understudy/internal/sample"
)

// drawText draws a text of the characters that have a meaning in PostgreSQL's text form of an array.
func drawText(rng *rand.Rand) string {
	var b strings.Builder
	for range rng.IntN(6) {
		b.WriteString([]string{",", `"`, `'`, "{", "}", `\`, " ", "NULL", "null", "é", "\n", "a"}[rng.IntN(12)])
	}
	return b.String()
}

// The store has no arrays in its tables. A program that reads them needs the driver's decoder: the text form of an array can't
// be split at its commas.
func TestArraysComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	c := connectOutside(t, thingTables.Database(t))
	rng := rand.New(rand.NewPCG(sample.Seed(t), 0))
	texts := []string{"", ",", `"`, "{}", "NULL", `\`}
	for range sample.Count(10_000, 100_000) {
		texts = append(texts, drawText(rng))
	}
	var back []string
	var form string
	err := c.QueryRow(t.Context(), "SELECT $1::text[], $1::text[]::text", texts).Scan(&back, &form)
	checktest.MustNoError(t, err, "read the array")
	checktest.True(t, slices.Equal(back, texts), "an array of %d texts came back differently", len(texts))
	split := strings.Split(strings.Trim(form, "{}"), ",")
	checktest.True(t, !slices.Equal(split, texts) && len(split) != len(texts), "split at its commas, the array is right")

	none, square := pgtype.Text{}, [][]string{{"a,b", "{"}, {`"`, "NULL"}}
	var withNull []pgtype.Text
	var squareBack [][]string
	var empty, missing []string
	err = c.QueryRow(t.Context(), "SELECT ARRAY['NULL', NULL, ''], $1::text[], '{}'::text[], NULL::text[]", square).
		Scan(&withNull, &squareBack, &empty, &missing)
	checktest.MustNoError(t, err, "read arrays")
	checktest.True(t, slices.Equal(withNull, []pgtype.Text{{String: "NULL", Valid: true}, none, {Valid: true}}), "with a NULL: %v", withNull)
	checktest.Equal(t, fmt.Sprintf("%q", squareBack), fmt.Sprintf("%q", square), "an array of two dimensions")
	checktest.True(t, empty != nil && len(empty) == 0 && missing == nil, "an empty array is %#v, NULL is %#v", empty, missing)
	err = c.QueryRow(t.Context(), "SELECT ARRAY['NULL', NULL]").Scan(&back)
	checktest.True(t, err != nil, "a NULL in an array became %q", back)
}

// The store keeps times as numbers, and 0 is no time (storetest: RunJobs, RunErasing). In columns for times, NULL is no time.
// The usual default of coalesce is 1970, which looks like a time.
func TestATimeThatIsNotSetIsNotIn1970(t *testing.T) {
	t.Parallel()
	c := connectOutside(t, thingTables.Database(t))
	var unset *time.Time
	var usual time.Time
	err := c.QueryRow(t.Context(), "SELECT NULL::timestamptz, coalesce(NULL::timestamptz, to_timestamp(0))").Scan(&unset, &usual)
	checktest.MustNoError(t, err, "read times")
	checktest.True(t, unset == nil, "NULL is %v", unset)
	checktest.True(t, usual.Year() == 1970 && !usual.IsZero(), "the default of coalesce is %v", usual)
	err = c.QueryRow(t.Context(), "SELECT NULL::timestamptz").Scan(&usual)
	checktest.True(t, err != nil, "NULL became %v", usual)
}
