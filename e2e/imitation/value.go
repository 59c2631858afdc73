// Values: what stands in rows and records, drawn from a seed, the same for the same place.

package imitation

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"
)

const maxDepth = 4

// at is a place that a value stands at: a record of a pool and the path inside it.
type at struct {
	seed  string
	index int
	depth int
}

func (a at) under(name string) at { return at{a.seed + "." + name, a.index, a.depth + 1} }

func (a at) draw(n int) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(a.seed))
	return int(h.Sum64()>>33) % n
}

// newest is the time of the first row; each row after it is older.
var newest = time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC)

// value returns a value of a schema.
func (a *API) value(of any, name string, where at) any {
	schema := a.doc.merged(of, 0)
	if fixed, is := schema["const"]; is {
		return fixed
	}
	if choices, _ := schema["enum"].([]any); len(choices) > 0 {
		return plain(choices[where.draw(len(choices))])
	}
	if nullable, _ := schema["nullable"].(bool); nullable && where.draw(5) == 0 && where.depth > 1 {
		return nil
	}
	switch typeOf(schema) {
	case "object":
		return a.object(schema, where)
	case "array":
		if where.depth > maxDepth {
			return []any{}
		}
		out := []any{}
		for i := range 1 + where.draw(2) {
			out = append(out, a.value(schema["items"], name, where.under(strconv.Itoa(i))))
		}
		return out
	case "integer":
		return number(schema, where)
	case "number":
		return float64(number(schema, where)) + 0.5
	case "boolean":
		return where.draw(2) == 0
	}
	return a.text(schema, name, where)
}

// plain turns times, which YAML reads as such, back into text.
func plain(of any) any {
	if at, is := of.(time.Time); is {
		return at.Format(time.RFC3339)
	}
	return of
}

func (a *API) object(schema object, where at) object {
	out := object{}
	properties, _ := schema["properties"].(object)
	for name, of := range properties {
		if where.depth > maxDepth {
			break
		}
		if writeOnly, _ := a.doc.resolve(of)["writeOnly"].(bool); writeOnly {
			continue
		}
		out[name] = a.value(of, name, where.under(name))
	}
	if more, is := schema["additionalProperties"].(object); is && len(properties) == 0 && where.depth <= maxDepth {
		out["first"] = a.value(more, "first", where.under("first"))
	}
	return out
}

func number(schema object, where at) int {
	low, high := 1, 1_000_000_000
	if n, is := schema["minimum"].(int); is {
		low = n
	}
	if n, is := schema["maximum"].(int); is {
		high = n
	}
	if high <= low {
		return low
	}
	return low + where.draw(high-low)
}

// text returns a text in the format that the schema names, or whose form its example shows.
func (a *API) text(schema object, name string, where at) string {
	format, _ := schema["format"].(string)
	example, _ := schema["example"].(string)
	n := where.draw(1 << 30)
	moment := newest.Add(-time.Duration(where.index)*time.Hour - time.Duration(n%50)*time.Minute)
	_, exampleIsTime := schema["example"].(time.Time)
	switch {
	case format == "date":
		return moment.Format(time.DateOnly)
	case format == "date-time", exampleIsTime, strings.HasSuffix(name, "_at"):
		return moment.Format(time.RFC3339)
	case format == "uuid":
		return fmt.Sprintf("%08x-0000-4000-8000-%012x", n, where.index)
	case format == "uri", format == "url", strings.HasSuffix(name, "_url"):
		return fmt.Sprintf("https://files.example/%s/%x", name, n)
	case format == "email", name == "email":
		return fmt.Sprintf("person-%x@mail.example", n)
	case format == "ipv4":
		return fmt.Sprintf("192.0.2.%d", n%250+1)
	case name == "gid":
		return strconv.Itoa(1_200_000_000_000 + n)
	case name == "id":
		return fmt.Sprintf("P%07X", n)
	case strings.Contains(example, "/") && !strings.Contains(example, ":"): // a name with a slash in it
		return fmt.Sprintf("%s-%x", example, n)
	case example != "" && n%3 == 0:
		return example
	}
	return fmt.Sprintf("%s %x", name, n)
}
