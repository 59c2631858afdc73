// Stripe: walks lists with npm stripe, there and back, and makes a customer; prints what it was given.
import { readFileSync } from 'node:fs';
import Stripe from 'stripe';
import { HttpsProxyAgent } from 'https-proxy-agent';

const [address, key, asked] = process.argv.slice(2);
const does = asked === '-' ? readFileSync(0, 'utf8') : asked;
const client = (address, key) => {
  const { protocol, hostname, port } = new URL(address);
  // With HTTPS_PROXY it is asked by the line of docs/reference/proxy.md.
  const httpAgent = process.env.HTTPS_PROXY && new HttpsProxyAgent(process.env.HTTPS_PROXY);
  return new Stripe(key, { protocol: protocol.slice(0, -1), host: hostname, ...(port && { port }), ...(httpAgent && { httpAgent }) });
};
const stripe = client(address, key);
const out = {};
const all = async (list) => {
  const rows = [];
  for await (const row of list) rows.push(row);
  return rows;
};
// call is what one call gives at an address: its records, or its error.
const call = async (client, { do: what, kind, id, limit, expand, account, version, name }) => {
  const of = client[kind === 'payment_intents' ? 'paymentIntents' : kind];
  const options = { ...(account && { stripeAccount: account }), ...(version && { apiVersion: version }) };
  const params = expand ? { expand } : {};
  try {
    if (what === 'list') return (await of.list({ limit, ...params }, options)).data;
    return [what === 'update' ? await of.update(id, { name }, options) : await of.retrieve(id, params, options)];
  } catch (e) {
    return { status: e.statusCode, message: e.message };
  }
};
if (does.startsWith('{')) {
  const { direct, ops } = JSON.parse(does);
  const other = client(direct, 'sk_test_slowapitoken');
  for (const op of ops) {
    for (const c of [stripe, other]) console.log(JSON.stringify(await call(c, op)));
  }
} else if (does === 'version') {
  console.log(Stripe.API_VERSION);
} else if (does === 'create') {
  const made = await stripe.customers.create({ name: 'Lost', metadata: { of: 'node', deep: 'a=b&c' } });
  console.log(JSON.stringify({ made: [await stripe.customers.retrieve(made.id)] }));
} else if (does === 'customers') {
  console.log(JSON.stringify({ customers: await all(stripe.customers.list({ limit: 7 })) }));
} else {
  for (const name of ['customers', 'charges', 'paymentIntents', 'refunds', 'products', 'prices', 'subscriptions', 'invoices', 'events']) {
    out[name] = await all(stripe[name].list({ limit: 7 }));
  }
  const last = out.customers[out.customers.length - 1].id;
  out.back = await all(stripe.customers.list({ limit: 4, ending_before: last }));
  out.mail = await all(stripe.customers.list({ email: out.customers[3].email }));
  out.since = await all(stripe.charges.list({ created: { gte: out.charges[9].created }, limit: 5 }));
  out.found = await all(stripe.customers.search({ query: `email:"${out.customers[3].email}"` }));
  out.canceled = await all(stripe.subscriptions.list({ status: 'all', limit: 5 }));
  const charge = out.charges[0].id;
  if (does !== 'outage') out.expanded = [await stripe.charges.retrieve(charge, { expand: ['customer'] })];
  out.plain = [await stripe.charges.retrieve(charge)];
  out.connected = await all(stripe.customers.list({ limit: 5 }, { stripeAccount: 'acct_1SlowapiConnect1' }));
  out.v2 = await all(stripe.v2.core.events.list({ object_id: out.customers[0].id, limit: 2 }));
  console.log(JSON.stringify(out));
}
