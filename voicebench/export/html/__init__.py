"""The report as one HTML file: offline, without any request, with its charts drawn as SVG."""
