// Where a link of an agent's may lead.

/** An address that may be gone to; "" for every other. @param {string} address */
export function safe(address) {
  const bare = address.startsWith("<") ? address.slice(1, -1) : address;
  try {
    const url = new URL(bare);
    return (url.protocol === "http:" || url.protocol === "https:") && !url.username && !url.password ? url.href : "";
  } catch {
    return "";
  }
}
