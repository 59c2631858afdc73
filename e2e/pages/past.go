// Past: something happens to a record, so that its page has something to tell.

package pages

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Alter changes a call upstream, asks for it anew, and gives the pages that
// show it: the call, its versions side by side, and lists at an earlier moment.
func Alter(viewer, api string) ([]Page, error) {
	calls, err := records(viewer, "calls", "?Status=completed&PageSize=200")
	if err != nil || len(calls) < 3 {
		return nil, fmt.Errorf("no call to alter: %w", err)
	}
	sid := calls[2].text("sid")
	path := "/twilio/calls/" + sid
	if err := read(viewer+path+".json", new(record)); err != nil {
		return nil, err
	}
	first := time.Now().UTC()
	for _, edit := range []string{`"price":"-0.99000"`, `"status":"failed"`, `"status":"completed","price":"-0.42000"`} {
		if err := post(api+"/-/edit", `{"kind":"calls","records":[{"sid":"`+sid+`",`+edit+`}]}`); err != nil {
			return nil, err
		}
		if err := anew(viewer + path + ".json"); err != nil {
			return nil, err
		}
	}
	moment := func(t time.Time) string { return url.QueryEscape(t.Format(time.RFC3339Nano)) }
	return []Page{
		{"timeline", path}, {"compare", path + "?compare=" + moment(first) + ".." + moment(time.Now().UTC())},
		{"then", path + "?understudy.as_of=" + moment(first)}, {"asof", "/twilio/calls?understudy.as_of=" + moment(first)}, {"jobs", "/jobs"},
	}, nil
}

// anew asks as a reload with the shift key does.
func anew(address string) error {
	req, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Cache-Control", "no-cache")
	client := http.Client{Timeout: 20 * time.Second}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", address, resp.Status)
	}
	return nil
}

func post(address, body string) error {
	resp, err := http.Post(address, "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		return fmt.Errorf("%s: %s %s", address, resp.Status, said)
	}
	return nil
}
