#!/bin/sh
# Makes sure that Chromium is there for the tests that open a page; without rights to install it, says so and goes on.
command -v chromium >/dev/null 2>&1 && exit 0
command -v chromium-browser >/dev/null 2>&1 && exit 0
command -v google-chrome >/dev/null 2>&1 && exit 0
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    echo "installing Chromium for the page tests ..."
    apt-get update -qq >/dev/null && apt-get install -qq -y chromium >/dev/null && exit 0
fi
echo "no Chromium found: the tests that open a page will be skipped (install the package 'chromium' to run them)"
exit 0
