// Signs and verifies with `jose`, for `mcp-tests jose`. The first line of its input has the rules and the keys. Each further line is an array of
// questions, and is answered by a line with an array of answers, in the same order.

import * as jose from 'jose'
import { createInterface } from 'node:readline'

let rules
const privateKeys = new Map()
let published

/// Verifies an access token: [true, what it says] or [false, why not].
async function token(text) {
  const { payload } = await jose.jwtVerify(text, published, {
    issuer: rules.issuer,
    audience: rules.resource,
    typ: 'at+jwt',
    algorithms: rules.algs,
    requiredClaims: ['exp'],
    clockTolerance: rules.leeway,
    currentDate: new Date(rules.now * 1000),
  })
  return { sub: payload.sub, client_id: payload.client_id, scope: payload.scope }
}

/// Verifies a proof of possession for a request. `accessToken`: that which the request carries, if any.
async function proof(text, accessToken, method, url, now, nonce) {
  const { payload, protectedHeader } = await jose.jwtVerify(text, jose.EmbeddedJWK, {
    typ: 'dpop+jwt',
    algorithms: rules.algs,
    currentDate: new Date(now * 1000),
  })
  check(typeof payload.jti === 'string' && payload.jti.length > 0, 'jti')
  check(payload.htm === method, 'htm')
  check(payload.htu === url, 'htu')
  check(typeof payload.iat === 'number' && now - payload.iat < rules.window && payload.iat - now <= rules.window, 'iat')
  if (accessToken !== null) check(payload.ath === await hash(accessToken), 'ath')
  if (nonce !== null) check(payload.nonce === nonce, 'nonce')
  return { jkt: await jose.calculateJwkThumbprint(protectedHeader.jwk) }
}

/// Verifies the assertion of a client.
async function assertion(text, alg, jwk, clientId, issuer, now) {
  const { protectedHeader, payload } = await jose.jwtVerify(text, await jose.importJWK(jwk, alg), {
    issuer: clientId,
    subject: clientId,
    audience: issuer,
    typ: 'JWT',
    algorithms: [alg],
    requiredClaims: ['exp', 'iat', 'jti'],
    currentDate: new Date(now * 1000),
  })
  return { kid: protectedHeader.kid, jti: payload.jti }
}

/// Signs an object with a header.
async function sign(kid, header, payload) {
  const { alg } = header
  const id = `${kid} ${alg}`
  if (!privateKeys.has(id)) privateKeys.set(id, jose.importPKCS8(rules.private[kid], alg))
  return { token: await new jose.SignJWT(payload).setProtectedHeader(header).sign(await privateKeys.get(id)) }
}

/// Makes a key of RSA.
async function rsa() {
  const { privateKey } = await jose.generateKeyPair('RS256', { extractable: true })
  const { n, e, kty } = await jose.exportJWK(privateKey)
  return { pkcs8: await jose.exportPKCS8(privateKey), jwk: { kty, n, e } }
}

async function thumbprint(jwk) {
  return { jkt: await jose.calculateJwkThumbprint(jwk) }
}

async function hash(text) {
  return jose.base64url.encode(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))))
}

function check(holds, what) {
  if (!holds) throw new Error(what)
}

const questions = { token, proof, assertion, sign, rsa, thumbprint }

async function answer([kind, ...parameters]) {
  try {
    return [true, await questions[kind](...parameters)]
  } catch (why) {
    return [false, `${why.code ?? why.name}: ${why.message}`]
  }
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const asked = JSON.parse(line)
  if (Array.isArray(asked)) {
    console.log(JSON.stringify(await Promise.all(asked.map(answer))))
  } else {
    rules = asked
    published = jose.createLocalJWKSet({ keys: rules.keys })
  }
}
