package io.idempotence.spring.form;

import io.idempotence.spring.internal.Sha256;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.springframework.web.util.HtmlUtils;

/** A plain page without scripts, in the colours that the browser prefers. */
final class StandardFormProblemPage implements FormProblemPage {
    private static final String STYLE = """
            :root{color-scheme:light dark;--page:#f6f5f2;--card:#fff;--text:#1d2327;--soft:#565f66;--line:#dedbd4;--mark:#a15c07;--link:#0b5a8a;--on-link:#fff}
            @media (prefers-color-scheme:dark){:root{--page:#14181b;--card:#1c2226;--text:#e8e6e1;--soft:#a9b0b5;--line:#323a40;--mark:#e0a04a;--link:#7cc0ea;--on-link:#0d1b24}}
            *{box-sizing:border-box}
            body{margin:0;min-height:100vh;display:grid;place-items:center;padding:1.5rem;background:var(--page);color:var(--text);font:1.0625rem/1.6 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","PingFang SC","Microsoft YaHei",sans-serif}
            main{width:100%;max-width:34rem;background:linear-gradient(var(--mark),var(--mark)) 0 0/100% 4px no-repeat var(--card);border:1px solid var(--line);border-radius:.5rem;padding:2.25rem 2.25rem 2rem;box-shadow:0 1px 2px rgb(0 0 0/.05),0 12px 32px -16px rgb(0 0 0/.25)}
            h1{margin:0 0 .75rem;font-size:1.5rem;line-height:1.3;font-weight:650;text-wrap:balance}
            p{margin:0 0 1rem;color:var(--soft)}
            p:last-of-type{margin-bottom:0}
            a{display:inline-block;margin-top:1.5rem;padding:.6rem 1.15rem;border-radius:.375rem;background:var(--link);color:var(--on-link);font-weight:600;text-decoration:none}
            a:hover{text-decoration:underline}
            a:focus-visible{outline:3px solid var(--mark);outline-offset:3px}
            """;

    private static final String POLICY = "default-src 'none'; style-src 'sha256-" + Sha256.base64(STYLE)
            + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

    @Override
    public void write(FormProblem problem, HttpServletRequest request, HttpServletResponse response)
            throws IOException {
        StringBuilder html = new StringBuilder("<!doctype html><html lang=\"")
                .append(escaped(response.getLocale().toLanguageTag()))
                .append(
                        "\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>")
                .append(escaped(problem.title()))
                .append("</title><style>")
                .append(STYLE)
                .append("</style></head><body><main><h1>")
                .append(escaped(problem.title()))
                .append("</h1>");
        for (String paragraph : problem.text().split("\n")) {
            html.append("<p>").append(escaped(paragraph.strip())).append("</p>");
        }
        if (problem.back() != null) {
            html.append("<a href=\"")
                    .append(escaped(problem.back()))
                    .append("\">")
                    .append(escaped(problem.link()))
                    .append("</a>");
        }
        byte[] page = html.append("</main></body></html>").toString().getBytes(StandardCharsets.UTF_8);
        response.setContentType("text/html;charset=UTF-8");
        response.setHeader("Content-Security-Policy", POLICY);
        response.setHeader("X-Content-Type-Options", "nosniff");
        response.setContentLength(page.length);
        response.getOutputStream().write(page);
    }

    private static String escaped(String text) {
        return HtmlUtils.htmlEscape(text, StandardCharsets.UTF_8.name());
    }
}
