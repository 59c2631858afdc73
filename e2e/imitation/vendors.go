// Vendors: what their documents leave to prose.

package imitation

import (
	"fmt"
	"net/http"
	"strconv"
)

func bearer(r *http.Request, secret string) bool {
	return r.Header.Get("Authorization") == "Bearer "+secret
}

// DigitalOcean, Asana, PagerDuty and GitLab are the vendors whose documents are tried.
var (
	DigitalOcean = Vendor{
		Rows: 30, Secret: "dop_v1_imitation", Allows: bearer,
		Refusal:  `{"id":"Unauthorized","message":"Unable to authenticate you"}`,
		Missing:  `{"id":"not_found","message":"The resource you were accessing could not be found."}`,
		Mistake:  `{"id":"unprocessable_entity","message":"{} is missing"}`,
		Answered: http.Header{"Ratelimit-Limit": {"5000"}, "Ratelimit-Remaining": {"4816"}, "Ratelimit-Reset": {"1790000000"}},
	}
	Asana = Vendor{
		Prefix: "/api/1.0", Rows: 30, Secret: "2/imitation", Allows: bearer,
		Refusal: `{"errors":[{"message":"Not Authorized"}]}`,
		Missing: `{"errors":[{"message":"Unknown object","help":"For more information on API status codes and how to handle them, read the docs on errors"}]}`,
		Mistake: `{"errors":[{"message":"{}: Missing input"}]}`,
		ID:      func(pool, index int) string { return strconv.Itoa(1_200_000_000_000_000 + pool*1000 + index) },
	}
	PagerDuty = Vendor{
		Rows: 30, Secret: "y_NbAkKc66ryYTWUXYEu",
		Allows: func(r *http.Request, secret string) bool {
			return r.Header.Get("Authorization") == "Token token="+secret
		},
		Refusal: `{"error":{"message":"Invalid credentials","code":2006}}`,
		Missing: `{"error":{"message":"Not Found","code":2100}}`,
		Mistake: `{"error":{"message":"Invalid Input Provided","code":2001,"errors":["{} is missing"]}}`,
		ID:      func(pool, index int) string { return fmt.Sprintf("P%05d%03d", pool%100_000, index) },
	}
	GitLab = Vendor{
		Prefix: "/api/v4", Rows: 30, Secret: "glpat-imitation", Other: "path_with_namespace",
		Allows:  func(r *http.Request, secret string) bool { return r.Header.Get("Private-Token") == secret },
		Refusal: `{"message":"401 Unauthorized"}`,
		Missing: `{"message":"404 Not Found"}`,
		Mistake: `{"error":"{} is missing"}`,
	}
)
