// This file answers requests for sums in JSON and CSV.

package search

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/csvline"
	"understudy/kit/header"
	"understudy/kit/jsonhttp"
)

// formCSV is the CSV format, which only sums support.
const formCSV = "csv"

// answerSum answers a request for a sum. CSV cannot say that values are missing, so an incomplete sum in CSV is an error.
func (h *handler) answerSum(w http.ResponseWriter, r *http.Request, c understudy.Caller) error {
	q, form, err := readSum(r)
	if err != nil {
		return err
	}
	if wait, ok := header.Wait(r.Header.Values("Prefer")); ok && wait > 0 {
		q.Wait = min(wait, h.s.o.Limits.Time)
		w.Header().Set("Preference-Applied", "wait="+strconv.Itoa(int(q.Wait/time.Second)))
	} else if form == formCSV {
		q.Wait = h.s.o.Limits.Time
	}
	out, err := h.s.Sum(r.Context(), c, q)
	if err != nil {
		return err
	}
	if form == formCSV && !out.Complete {
		return busyError("search: " + strings.Join(out.Notes, " "))
	}
	e := understudy.AuditEntry{Action: understudy.ActionSearch, What: "sum", Rows: len(out.Rows)}
	if err := h.recordAudit(r.Context(), c, q.Search, e); err != nil {
		return err
	}
	if form != formCSV {
		out.Complete = out.Complete && out.Incomplete == ""
		jsonhttp.Write(w, http.StatusOK, out)
		return nil
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8; header=present")
	w.Header().Set("Content-Disposition", `attachment; filename="sums.csv"`)
	if r.Method != http.MethodHead {
		_, _ = w.Write(sumCSV(out))
	}
	return nil
}

// sumCSV returns a sum as CSV (RFC 4180).
func sumCSV(out *query.SumResult) []byte {
	head := append(slices.Clone(out.By), "unit", "count", "values", "sum", "mean", "p50", "p95")
	dst := csvline.Append(nil, head)
	put := func(r *query.SumRow, rest string) {
		cells := make([]string, 0, len(head))
		for i := range out.By {
			key := rest
			if rest == "" {
				key = csvline.EscapeFormulas(r.Key[i])
			}
			cells = append(cells, key)
		}
		cells = append(cells, csvline.EscapeFormulas(r.Unit), strconv.FormatInt(r.Count, 10), strconv.FormatInt(r.Values, 10), r.Sum)
		if s := r.Seconds; s != nil {
			cells = append(cells, formatDecimal(s.Mean), formatDecimal(s.P50), formatDecimal(s.P95))
		} else {
			cells = append(cells, "", "", "")
		}
		dst = csvline.Append(dst, cells)
	}
	for i := range out.Rows {
		put(&out.Rows[i], "")
	}
	for i := range out.Others {
		put(&out.Others[i], "(others)")
	}
	if out.Incomplete != "" {
		dst = append(dst, "# not complete: "+out.Incomplete+"\r\n"...)
	}
	return dst
}

func formatDecimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// readSum reads the parameters of a sum. It returns ErrInvalid for wrong parameters.
func readSum(r *http.Request) (q query.SumRequest, form string, err error) {
	values, err := parseParameters(r, "q", "kind", "source", "sum", "by", "zone", "limit", "format")
	if err != nil {
		return q, "", err
	}
	q = query.SumRequest{
		Search: query.SearchRequest{Text: values.Get("q"), Source: values.Get("source"), Kinds: values["kind"]},
		Sum:    values.Get("sum"),
	}
	for _, by := range values["by"] {
		q.By = append(q.By, strings.Split(by, ",")...)
	}
	if name := values.Get("zone"); name != "" {
		if q.Zone, err = time.LoadLocation(name); err != nil || name == "Local" {
			return q, "", newInvalid("zone=%s: write the name of a time zone, like Europe/Berlin", understudy.Clip(name))
		}
	}
	if q.Limit, err = readLimit(values, query.MaxSums); err != nil {
		return q, "", err
	}
	switch form = values.Get("format"); form {
	case formJSON, formCSV:
	case "":
		form = formJSON
		if strings.HasPrefix(strings.ToLower(r.Header.Get("Accept")), "text/csv") {
			form = formCSV
		}
	default:
		return q, "", newInvalid("format=%s: a sum is json or csv", understudy.Clip(form))
	}
	return q, form, nil
}
