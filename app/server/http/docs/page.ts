/** The page at `/api/docs`: a frame that the script fills. */
export const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Camera server API</title>
<link rel="stylesheet" href="/docs.css">
<script type="module" src="/docs.js"></script>
</head>
<body>
<header>
<h1>Camera server API <small id="version"></small></h1>
<input id="search" type="search" placeholder="Search path, summary, tag or role" aria-label="Search operations" autofocus>
<label><input id="versioned" type="checkbox"> show /api/v1</label>
<a href="/api/openapi.json">openapi.json</a>
</header>
<main id="operations" aria-live="polite"><p>Loading…</p></main>
</body>
</html>
`
