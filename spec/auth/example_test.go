package auth_test

import (
	"fmt"
	"net/http"

	"understudy/spec/auth"
)

// Stripe's programs send a bearer token, its command line Basic with the key as user name.
func Example() {
	a := auth.Auth{Style: "bearer", Callers: []string{"bearer", "basic {secret}:"}}
	taken, _ := a.ParseAccepted()
	for _, scheme := range taken {
		r, _ := http.NewRequest(http.MethodGet, "https://api.example.com/v1/charges", nil)
		scheme.Sign(r, "", "sk_123")
		fmt.Println(r.Header.Get("Authorization"))
	}
	// Output:
	// Bearer sk_123
	// Basic c2tfMTIzOg==
}
