// Signs the agent card of its argument as @a2a-js/sdk 1.3 does: the card and the public key as one JSON document.
const { generateAgentCardSignature } = require("a2a-js-10");
const jose = require("jose");

async function main(card) {
  const { privateKey, publicKey } = await jose.generateKeyPair("ES256");
  const sign = generateAgentCardSignature(privateKey, { alg: "ES256", kid: "js", typ: "JOSE" });
  process.stdout.write(JSON.stringify({ card: await sign(card), key: await jose.exportJWK(publicKey) }));
}

main(JSON.parse(process.argv[2]));
