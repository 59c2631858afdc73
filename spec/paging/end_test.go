package paging

import "testing"

// What says that there is more contradicts the end of a list, wherever an answer has it.
func TestAnAnswerThatSaysMoreRefutesTheEnd(t *testing.T) {
	follow(t, Rules{Style: "none"}, []answered{
		{body: `{"rows":["a"],"pagination":{"moreData":true}}`, open: "refuted"},
		{body: `{"rows":[1],"response":{"a":{"b":{"pageInfo":{"hasNextPage":true}}}}}`, open: "refuted"},
		{body: `{"rows":[1],"links":[{"rel":"self","href":"/a"},{"rel":"next","href":"/b"}]}`, open: "refuted"},
		{body: `{"rows":[1],"links":[{"rel":"self","href":"/a"},{"rel":"next","href":""},"x"]}`},
		{body: `{"rows":[1],"links":[{"rel":"self","href":"/a"}]}`, open: "alone"},
		{body: `{"rows":[1],"total":{"value":57,"relation":"eq"}}`, open: "refuted"},
		{body: `{"rows":[1],"total":{"value":1,"relation":"eq"}}`, open: "alone"},
		{body: `{"rows":[1],"moreResultsAvailable":true}`, open: "refuted"},
		{body: `{"rows":[1],"moreResultsAvailable":1}`, open: "refuted"},
		{body: `{"rows":[1],"moreResultsAvailable":false}`, open: "alone"},
		{body: `{"rows":[1],"readMore":"/help"}`, open: "alone"},
		{body: `{"rows":[1],"has_more":"on"}`, open: "refuted"},
		{body: `{"rows":[1],"pagination":{"more":"T"}}`, open: "refuted"},
		{body: `{"rows":[1],"total":"1,333"}`, open: "refuted"},
		{body: `{"rows":[1],"range":"1-25/333"}`, open: "refuted"},
		{body: `{"rows":[1],"range":"1-25/25"}`, open: "alone"},
		{body: `{"rows":[1],"page":"1 of 12"}`, open: "refuted"},
		{body: `{"rows":[1],"page":"1 of 1"}`, open: "alone"},
		{body: `{"rows":[1,2,3],"page":1,"of":2}`, open: "refuted"},
		{body: `{"rows":[1,2,3],"page":1,"of":1}`, open: "alone"},
		{body: `{"rows":[1,2,3],"page":1,"total":3}`, open: "alone"},
		{body: `{"rows":[1,2],"meta":{"page":{"size":2}}}`, open: "refuted"},
		{body: `{"rows":[1,2],"meta":{"page":{"size":3}}}`, open: "alone"},
		{body: `{"rows":[1,2],"font":{"size":2}}`, open: "alone"},
		{body: `{"rows":[1],"usage":"1 of 12"}`, open: "alone"}, // of requests
		{body: `{"rows":[1],"meta":{"page":{"current":1,"total":12}}}`, open: "refuted"},
		{body: `{"rows":[1],"paginator":{"current":1,"last":12}}`, open: "refuted"},
		{body: `{"rows":[1],"paginator":{"current":1,"last":1}}`, open: "alone"},
		{body: `{"rows":[1],"meta":{"totals":{"items":333}}}`, open: "refuted"},
		{body: `{"rows":[1],"totals":{"all":1}}`, open: "alone"},
		{body: `{"rows":[1],"pageTotal":9}`, open: "refuted"},
		{body: `{"rows":[1],"final":false}`, open: "refuted"},
		{body: `{"rows":[1],"finalPage":false}`, open: "refuted"},
		{body: `{"rows":[1],"nb_results":333}`, open: "refuted"},
		{body: `{"rows":[1],"total_found":333}`, open: "refuted"},
		{body: `{"rows":[1],"resumptionToken":"abc"}`, open: "refuted"},
		{body: `{"rows":[1],"offset_next":25}`, open: "refuted"},
		{body: `{"rows":[1],"search_metadata":{"next_results":"?max_id=7"}}`, open: "refuted"}, // X
		{body: `{"rows":[1],"$skipToken":"eyJ2"}`, open: "refuted"},                            // Azure Resource Graph
		{body: `{"rows":[1],"PaginationToken":"eyJ2"}`, open: "refuted"},                       // Amazon Cognito
		{body: `{"rows":[1],"nextCursorMark":"AoE"}`, open: "refuted"},                         // Solr
		{body: `{"rows":[1],"has_older":true}`, open: "refuted"},
		{body: `{"rows":[1],"numResults":57}`, open: "refuted"},
		{body: `{"rows":[1],"has_more":0.0}`},
		{body: `[1]`, header: "Opc-Next-Page: eyJ2", open: "refuted"},                     // Oracle Cloud
		{body: `[1]`, header: "X-Ms-Continuation-Nextpartitionkey: 1!8", open: "refuted"}, // Azure Table Storage
		{body: `{"rows":[1],"next_page_params":{"page":2}}`, open: "refuted"},
		{body: `{"rows":[1],"found":333}`, open: "refuted"},
		{body: `{"rows":[1],"meta":{"matches":333}}`, open: "refuted"},
		{body: `{"rows":[1],"found":1,"matches":1}`, open: "alone"},
		{body: `{"rows":[1],"total":"1+"}`, open: "refuted"},
		{body: `{"rows":[1],"total":"333 items"}`, open: "refuted"},
		{body: `{"rows":[1],"total":1099511627776}`, open: "refuted"}, // above 2^31
		{body: `{"rows":[1],"total":"1 item"}`, open: "alone"},
		{body: `[1]`, header: "X-Cursor-Next: abc", open: "refuted"},
		{body: `[1]`, header: "X-Results-Total: 333", open: "refuted"},
		{body: `{"rows":[1],"incomplete_results":true}`, open: "refuted"},
		{body: `{"rows":[1],"incomplete_results":false}`, open: "alone"},
		{body: `{"rows":[1,2],"limit":2}`, open: "refuted"},
		{body: `{"rows":[1,2],"limit":3,"size":2}`, open: "alone"},
		{body: `[1,2]`, header: "Content-Range: items 0-1/57", open: "refuted"},
		{body: `[1,2]`, header: "Content-Range: items 0-1/2", open: "alone"},
		{body: `[1,2]`, header: "Content-Range: items 0-1/*", open: "alone"},
		{body: `[1,2]`, header: `Link: </a?page=6>; rel="last"`, open: "refuted"},
		{body: `[1,2]`, header: `Link: </a?page=1>; rel="last"`, open: "alone"},
	})
	follow(t, Rules{Style: "none"}, []answered{
		{body: `{"rows":[1],"isLast":false}`, open: "refuted"}, // Jira
		{body: `{"rows":[1],"isLast":true}`},
		{body: `{"rows":[1],"page":{"last":false}}`, open: "refuted"}, // Spring
		{body: `{"rows":[1],"last":true}`},
		{body: `{"rows":[1],"last":"/a?page=6"}`, open: "alone"},
		{body: `{"rows":[1],"pageable":{"last":true}}`},
		{body: `{"rows":[1],"chapter":{"last":true,"next_id":null}}`, open: "alone"}, // of another list
		{body: `{"rows":[1],"isLastPage":"False"}`, open: "refuted"},                 // Bitbucket Server
		{body: `{"rows":[1],"last_page":false}`, open: "refuted"},                    // ClickUp
		{body: `{"rows":[1],"last_page":true}`},
		{body: `{"rows":[1],"last_page":6}`, open: "refuted"}, // Laravel
		{body: `{"rows":[1],"last_page":0}`, open: "alone"},
		{body: `{"rows":[1],"end_of_stream":false}`, open: "refuted"}, // Zendesk
		{body: `{"rows":[1],"end_reached":false}`, open: "refuted"},
		{body: `{"rows":[1],"done":false}`, open: "refuted"}, // Salesforce
		{body: `{"rows":[1],"done":true}`, open: "alone"},    // or the request is
		{body: `{"rows":[1],"job":{"done":false}}`, open: "alone"},
		{body: `{"rows":[1],"done":0}`, open: "alone"},
		{body: `{"rows":[1],"complete":false}`, open: "refuted"},
		{body: `{"rows":[1],"exhausted":false}`, open: "refuted"},
		{body: `{"rows":[1],"finished":false}`, open: "refuted"},
		{body: `{"rows":[1],"remaining":47}`, open: "refuted"},
		{body: `{"rows":[1],"remaining":0}`, open: "alone"},
		{body: `{"rows":[1],"metadata":{"remainingItemCount":47}}`, open: "refuted"}, // Kubernetes
		{body: `{"rows":[1],"remaining_pages":4}`, open: "refuted"},
		{body: `{"rows":[1],"rate_limit":{"remaining":47}}`, open: "alone"},
		{body: `{"rows":[1],"api_calls":{"remaining":47}}`, open: "alone"},
		{body: `{"rows":[1],"quota_remaining":287}`, open: "alone"}, // Stack Exchange
		{body: `[1]`, header: "X-RateLimit-Remaining: 47", open: "alone"},
		{body: `[1]`, header: "X-Remaining: 47", open: "alone"},
		{body: `{"rows":[1],"page":1,"of":57}`, open: "refuted"},
		{body: `{"rows":[1],"available":57,"returned":1}`, open: "refuted"}, // Marvel
		{body: `{"rows":[1],"available":true}`, open: "alone"},
		{body: `{"rows":[1],"metadata":{"continue":"eyJ2"}}`, open: "refuted"}, // Kubernetes
		{body: `{"rows":[1],"metadata":{"continue":""}}`},
		{body: `{"rows":[1],"continue":{"apcontinue":"B"}}`, open: "refuted"},           // Wikipedia
		{body: `{"rows":[1],"next_page":{"offset":"eyJ2"}}`, open: "refuted"},           // Asana
		{body: `{"rows":[1],"LastEvaluatedKey":{"id":{"S":"7"}}}`, open: "refuted"},     // DynamoDB
		{body: `{"rows":[1],"next":{"href":null}}`, open: "alone"},                      // nothing leads on
		{body: `{"rows":[1],"hydra:view":{"hydra:next":"/b"}}`, open: "refuted"},        // API Platform
		{body: `{"rows":[1],"link":[{"relation":"next","url":"/b"}]}`, open: "refuted"}, // FHIR
		{body: `{"rows":[1],"nbHits":57}`, open: "refuted"},                             // Algolia
		{body: `{"rows":[1],"nbPages":6}`, open: "refuted"},
		{body: `{"rows":[1],"response":{"numFound":57}}`, open: "refuted"},    // Solr
		{body: `{"rows":[1],"hits":{"total":57,"hits":[]}}`, open: "refuted"}, // Elasticsearch
		{body: `{"rows":[1],"info":{"more_records":true}}`, open: "refuted"},  // Zoho
		{body: `{"rows":[1],"info":{"more_records":false}}`},
		{body: `{"rows":[1],"pagination":{"more_items_in_collection":true}}`, open: "refuted"}, // Pipedrive
		{body: `[1]`, header: "X-WP-TotalPages: 6", open: "refuted"},                           // WordPress
		{body: `[1]`, header: "X-WP-Total: 57", open: "refuted"},
		{body: `[1]`, header: "X-Pagination-Page-Count: 6", open: "refuted"}, // Trakt
		{body: `[1]`, header: "X-Ms-Continuation: eyJ2", open: "refuted"},    // Azure Cosmos DB
		{body: `[1]`, header: "Total-Count: 57", open: "refuted"},
		{body: `[1]`, header: `X-Pagination: {"TotalCount":57,"HasNext":true}`, open: "refuted"}, // ASP.NET
		{body: `[1]`, header: `X-Pagination: {"TotalCount":1,"HasNext":false}`},
	})
	// A token that no rule names may lead on, unless something says that the list ends.
	follow(t, Rules{Style: "none", Page: "page"}, []answered{
		{body: `{"rows":[1],"cursor":"eyJ2"}`, open: "refuted"}, // Square
		{body: `{"rows":[1],"cursor":""}`, open: "alone"},
		{body: `{"rows":[1],"cursor":"eyJ2","has_more":false}`}, // Dropbox
		{body: `{"rows":[1],"offset":"itrX"}`, open: "refuted"}, // Airtable
		{body: `{"rows":[1],"offset":1}`, open: "alone"},
		{body: `{"rows":[1],"offset":"0"}`, open: "alone"},
		{ask: "page=3", body: `{"rows":[1],"cursor":"eyJ2"}`, open: "alone"}, // of this page
	})
	// Where next is absent on the last page, a full page is as long as its limit.
	follow(t, Rules{Style: "token", Next: "next", Cursor: "after"}, []answered{
		{body: `{"rows":[1,2],"limit":2,"cursor":"eyJ2"}`, open: "unseen"},
		{body: `{"rows":[1,2],"next":null,"isLast":false}`, open: "refuted"},
		{body: `{"rows":[1,2],"next":null,"remaining":4999}`}, // requests, perhaps
		{body: `{"rows":[1,2],"next":null,"complete":false}`}, // the work, perhaps
		{body: `{"rows":[1,2],"next":null,"remaining_items":47}`, open: "refuted"},
	})
	follow(t, Rules{Style: "header", Page: "page", First: 1}, []answered{
		{body: `[1,2]`, header: `Link: </a?page=6>; rel="last"`, open: "refuted"},
		{ask: "page=6", body: `[1,2]`, header: `Link: </a?page=6>; rel="last"`},
	})
	follow(t, Rules{Style: "body", Next: "next"}, []answered{
		{body: `{"rows":[1],"next":{}}`},
		{body: `{"rows":[1],"next":{"href":"/b"}}`, open: "refuted"},
	})
	// A place that is wrongly taken for next proves nothing against the right one.
	follow(t, Rules{Style: "body", Next: "links.prev"}, []answered{
		{body: `{"rows":[1],"links":{"prev":null,"next":"/b"}}`, open: "refuted"},
		{body: `{"rows":[1],"links":{"prev":null,"next":null}}`},
	})
	follow(t, Rules{Style: "number", Page: "page", Next: "done"}, []answered{
		{body: `{"rows":[1],"done":false}`, open: "refuted"},
	})
	// The last page of a list may be as long as its limit.
	follow(t, Rules{Style: "token", Next: "next", Cursor: "after"}, []answered{
		{body: `{"rows":[1,2],"next":null,"limit":2}`},
	})
}
