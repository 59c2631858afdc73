// Secrets, users and addresses that tests and their settings share.

package rig

// What the demo knows.
const (
	Account     = "AC00000000000000000000000000000001"
	DemoToken   = "understudydemotoken"
	MaskedToken = "understudymaskedtoken"
	APIToken    = "slowapitoken" // of the simulated API
	Version     = "/2010-04-01"
	Base        = Version + "/Accounts/" + Account
	OwnNumber   = "+14155550100" // one of the account's
)

// What other servers of tests know.
const (
	ProgramSecret = "githubprogramsecret"    // of a program that reads GitHub
	StripeToken   = "sk_test_understudy567"  // of a program that reads Stripe
	OriginToken   = "tokenofupstream1234"    // of an origin without a spec
	AnnasPassword = "four odd words of anna" // of the user anna
	PublicURL     = "http://house.test"      // of a server behind another
)
