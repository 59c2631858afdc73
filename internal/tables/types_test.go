// Values of records become values of columns, or are refused by the type of the column.

package tables

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"understudy/internal/checktest"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

// FuzzValuesOfColumns converts any JSON to every type of a column. What fits is JSON without U+0000 and stands for the same value.
// The type chosen for the value, and the type joined with any other, hold it.
func FuzzValuesOfColumns(f *testing.F) {
	for _, text := range []string{`1`, `"1"`, `1e999`, `-0.50`, `"\u0000\\u0000"`, `["a",null]`, `{"a":[1e99999,"\\\\u0000"]}`,
		`"2024-01-01T00:00:00Z"`, `1700000000.123456`, `true`, `""`, `[]`, `"1.7e9"`, `12345678901234567890`} {
		f.Add([]byte(text))
	}
	types := []string{text, bigint, numeric, boolean, timestamptz, textArray, jsonb}
	f.Fuzz(func(t *testing.T, body []byte) {
		v, err := jsonspan.Parse(body)
		if err != nil || jsonspan.CheckLossless(body) != nil || v.Kind == jsonspan.Null {
			return
		}
		natural := typeForValue(body, v)
		for _, typ := range types {
			for _, specType := range []string{"", spec.TypeISO, spec.TypeEpoch, spec.TypeMillis} {
				out, fits := encodeValue([]byte("x"), body, v, typ, specType)
				if joined := joinTypes(typ, natural); !fits {
					if _, fits := encodeValue(nil, body, v, joined, specType); !fits {
						t.Fatalf("%s does not fit %s, which is wider than %s and %s", body, joined, typ, natural)
					}
					continue
				}
				var decoded any
				d := json.NewDecoder(bytes.NewReader(out[1:]))
				d.UseNumber()
				if err := d.Decode(&decoded); err != nil {
					t.Fatalf("%s as %s is %s: %v", body, typ, out, err)
				}
				if shown := fmt.Sprint(decoded); bytes.ContainsRune([]byte(shown), 0) {
					t.Fatalf("%s as %s has U+0000: %q", body, typ, shown)
				}
				if s, isText := decoded.(string); typ == bigint && isText && s != jsonspan.Text(body, v) {
					t.Fatalf("%s as %s is %s", body, typ, out)
				}
			}
		}
	})
}

func TestNamesOfColumns(t *testing.T) {
	t.Parallel()
	taken := map[string]bool{"from": true, "ctid": true}
	for name, want := range map[string]string{
		"From": "from_2", "createdAt": "createdat", "": "_2", "ctid": "ctid_2", "a\x00b": "a_b", `a"b`: `a"b`,
		string(bytes.Repeat([]byte("é"), 40)): string(bytes.Repeat([]byte("é"), 31)),
	} {
		checktest.Equal(t, chooseName(name, taken), want, "the name of %q", name)
	}
}
