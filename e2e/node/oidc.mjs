// SPDX-License-Identifier: Apache-2.0

// An authorization server (oidc-provider) for the tests of pellucid login: node oidc.mjs MODULES RESOURCE LIFE
// prints its issuer, and then serves until its input ends. LIFE is that of access tokens, in seconds.
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [modules, resource, life] = process.argv.slice(2);
const require = createRequire(pathToFileURL(modules + '/x.js'));
const { default: Provider } = await import(pathToFileURL(require.resolve('oidc-provider')).href);
console.info = console.warn = () => {};

const server = createServer();
await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
const issuer = `http://127.0.0.1:${server.address().port}`;
const provider = new Provider(issuer, {
  features: {
    devInteractions: { enabled: true },
    deviceFlow: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (ctx, indicator) => {
        if (indicator !== resource) throw new Error('unknown resource');
        return { scope: 'mcp:read mcp:write', audience: resource, accessTokenFormat: 'jwt', accessTokenTTL: Number(life), jwt: { sign: { alg: 'RS256' } } };
      },
      useGrantedResource: () => true,
    },
  },
  scopes: ['openid', 'offline_access', 'mcp:read', 'mcp:write'],
  clientDefaults: { grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] },
  rotateRefreshToken: true,
  cookies: { keys: ['test'] },
  findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
});
server.on('request', provider.callback());
process.stdout.write(issuer + '\n');
process.stdin.on('end', () => process.exit(0)).resume();
