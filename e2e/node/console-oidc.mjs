// SPDX-License-Identifier: Apache-2.0

// A provider of OpenID Connect (oidc-provider) for the tests of the console: node console-oidc.mjs MODULES REDIRECT
// prints its issuer, and then serves until its input ends. It knows one client, pellucid.
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [modules, redirect] = process.argv.slice(2);
const require = createRequire(pathToFileURL(modules + '/x.js'));
const { default: Provider } = await import(pathToFileURL(require.resolve('oidc-provider')).href);
console.info = console.warn = () => {};

const groups = { alice: ['Pellucid Admins'], bob: ['mail team', 'others'], eve: ['others'] };
const server = createServer();
await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
const issuer = `http://127.0.0.1:${server.address().port}`;
const provider = new Provider(issuer, {
  clients: [{ client_id: 'pellucid', client_secret: 'secret-0123456789-0123456789-012', redirect_uris: [redirect], grant_types: ['authorization_code'], response_types: ['code'] }],
  features: { devInteractions: { enabled: true } },
  claims: { openid: ['sub'], email: ['email', 'email_verified'], groups: ['groups'] },
  conformIdTokenClaims: false,
  cookies: { keys: ['test'] },
  findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id, email: id + '@example.org', email_verified: id !== 'mallory', groups: groups[id] ?? [] }) }),
});
server.on('request', provider.callback());
process.stdout.write(issuer + '\n');
process.stdin.on('end', () => process.exit(0)).resume();
