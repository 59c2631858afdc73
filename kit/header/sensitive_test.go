// Tests of names of fields that may say who asks.

package header

import "testing"

func TestNamesOfCredentialsAndPersonsAreSensitive(t *testing.T) {
	for _, name := range []string{"Authorization", "Cookie", "Api-Key", "Apikey", "X-Access-Token", "X-Api-Key", "X-Auth-Token",
		"X-Session-Id", "Private-Token", "X-Goog-Api-Key", "X-Vault-Token", "X-Shopify-Access-Token", "Ocp-Apim-Subscription-Key", "Dd-Api-Key",
		"X-Amz-Security-Token", "X-Amzn-Oidc-Data", "X-Authorization", "Authentication", "X-Jwt", "X-Id-Token", "X-Token", "Token",
		"Session", "Sessionid", "X-Plex-Token", "X-Figma-Token", "X-Csrf-Token", "X-User-Id", "X-Userid", "X-Enduser", "X-Tenant",
		"X-Tenant-Id", "X-Tenantid", "X-Account", "Stripe-Account", "Dpop", "Signature", "Signature-Input", "X_auth_token",
		"X-Els-Insttoken", "Cf-Access-Client-Secret", "X-Accesskey", "X-Authz", "X-Callback-Url", "Impersonate-User", "X-Sid",
		"X-Device-Id", "X-Deviceid", "X-Client-Id", "X-Visitor", "X-Merchant-Id", "X-Shop", "X-Consumer-Id", "X-Subject", "X-Company"} {
		if !IsSensitive(name) {
			t.Errorf("%s is not", name)
		}
	}
	for _, name := range []string{"", "-", "Accept", "Accept-Language", "User-Agent", "X-User-Agent", "X-Amz-User-Agent", "Idempotency-Key",
		"Sec-Fetch-User", "Sec-Websocket-Key", "Origin", "Referer", "Range", "If-None-Match", "Via", "X-Requested-With", "X-Request-Id",
		"X-Github-Api-Version", "X-Author", "Traceparent", "Priority", "Dnt", "Save-Data", "Cache-Control", "X-Client-Version", "Keywords"} {
		if IsSensitive(name) {
			t.Errorf("%s is", name)
		}
	}
}

func TestNamesOfAnotherSenderAreKnown(t *testing.T) {
	for _, name := range []string{"Sudo", "X-Sudo", "Impersonate-User", "X-Impersonate-User", "On-Behalf-Of", "X-On-Behalf-Of", "X-Act-As",
		"X-Assume-User", "X-Account-Override", "X-As-User", "As-User", "X-Effective-User", "X-Effective-Userid", "X-Runas", "X-Run-As",
		"X-Switch-User", "_switch_user", "Acting-User", "X.Act.As", "Impersonate-Uid", "X-Assume-Role"} {
		if !IsImpersonating(name) {
			t.Errorf("%s names no other sender", name)
		}
		if !IsSensitive(name) {
			t.Errorf("%s is not sensitive", name)
		}
	}
	for _, name := range []string{"", "X-User-Id", "X-Userid", "X-Account-Id", "X-Username", "Stripe-Account", "X-Run-Id", "X-Effective-Date",
		"X-Login", "X-Save-As", "X-Action", "X-Switch", "User-Agent", "X-Role", "X-Overridden", "X-Asset-User", "Content-Disposition"} {
		if IsImpersonating(name) {
			t.Errorf("%s names another sender", name)
		}
	}
}
