package claims

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"

	"understudy"
	"understudy/bench/rig"
)

var toURI = claim{
	name: "options-as-text", systems: "27",
	says:    "A stream writes a map of options with log n allocations, where joining takes 2n + log n",
	figure:  "2n + log n against log n allocations, 20 lines against 10",
	measure: measureURI,
}

// kept keeps results, so that the compiler cannot remove their making.
var kept string

// measureURI writes ten options: joined, through a builder that grows, and with the product's type.
func measureURI(_ context.Context, r *rig.Run) (finding, error) {
	const options = 10
	var query understudy.Query
	for range options {
		query = append(query, understudy.Param{Name: fmt.Sprintf("Option%06d", rand.IntN(1e6)), Value: fmt.Sprint(rand.IntN(1e9))})
	}
	got, err := turn(r, []way{
		{"joined", func(n int) error {
			for range n {
				var parts []string
				for _, p := range query {
					parts = append(parts, p.Name+"="+p.Value)
				}
				kept = strings.Join(parts, "&")
			}
			return nil
		}},
		{"a builder that grows", func(n int) error {
			for range n {
				var b strings.Builder
				for i, p := range query {
					if i > 0 {
						b.WriteByte('&')
					}
					b.WriteString(p.Name)
					b.WriteByte('=')
					b.WriteString(p.Value)
				}
				kept = b.String()
			}
			return nil
		}},
		{"understudy.Query", func(n int) error {
			for range n {
				kept = query.String()
			}
			return nil
		}},
	})
	if err != nil {
		return finding{}, err
	}
	if kept == "" {
		return finding{}, errors.New("there is no result")
	}
	table, bars := tabulate("ten options", got)
	for i, m := range got {
		bars[i] = rig.Bar{Name: m.name, Value: m.allocs}
	}
	return finding{
		ours: fmt.Sprintf("allocations for ten options: joined %s, a builder %s, ours %s; %s, %s and %s ns", count(got[0].allocs), count(got[1].allocs),
			count(got[2].allocs), rig.Figure(got[0].median()), rig.Figure(got[1].median()), rig.Figure(got[2].median())),
		verdict: judge(got[0].allocs > options && got[1].allocs < options, heldThen),
		title:   "Allocations for ten options",
		bars:    bars, table: table,
		text: "The first two ways escape nothing, as in the article. understudy.Query escapes, computes the length first and allocates once. " +
			"It also tells a name without a value from an empty value.",
	}, nil
}

var packedStrings = claim{
	name: "packed-strings", systems: "12",
	says:    "JavaScript takes two bytes for each character, so two bytes of UTF-8 in one save memory",
	figure:  "half of the memory",
	measure: measurePacking,
}

//go:embed packing.js
var packing string

// measurePacking lets node measure what strings take in the heap of V8.
func measurePacking(ctx context.Context, r *rig.Run) (finding, error) {
	cmd := exec.CommandContext(ctx, "node", "--expose-gc", "-e", packing, fmt.Sprint(r.Size(2000, 200)))
	out, err := cmd.Output()
	if err != nil {
		return finding{}, fmt.Errorf("node: %w", err)
	}
	var rows []struct {
		Name          string
		Plain, Packed float64
	}
	if err := json.Unmarshal(out, &rows); err != nil {
		return finding{}, fmt.Errorf("node: %w: %s", err, out)
	}
	f := finding{title: "Bytes of a string of 10,000 characters in V8", table: [][]string{{"10,000 characters", "bytes", "bytes, packed"}}}
	for _, row := range rows {
		f.table = append(f.table, []string{row.Name, rig.Figure(row.Plain), rig.Figure(row.Packed)})
		f.bars = append(f.bars, rig.Bar{Name: row.Name, Value: row.Plain}, rig.Bar{Name: "packed", Value: row.Packed, Theirs: true})
	}
	f.ours = fmt.Sprintf("ASCII: %s bytes, packed %s. With one Chinese character: %s and %s", rig.Figure(rows[0].Plain), rig.Figure(rows[0].Packed),
		rig.Figure(rows[1].Plain), rig.Figure(rows[1].Packed))
	f.verdict = judge(rows[0].Packed < 0.75*rows[0].Plain, wrong)
	f.text = "V8 stores a string whose characters are all in Latin-1 with one byte for each. Packing saves nothing there. It halves a string that one " +
		"other character makes wide. A packed string may contain lone surrogates, which UTF-8 cannot carry."
	return f, nil
}
