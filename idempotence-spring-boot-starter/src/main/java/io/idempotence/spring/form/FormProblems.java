package io.idempotence.spring.form;

import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.springframework.context.MessageSource;
import org.springframework.context.support.ResourceBundleMessageSource;

/** The problems of forms, in the language of their senders. */
final class FormProblems {
    private static final String PREFIX = "idempotence.form.";

    private final MessageSource own = ownMessages();
    private final MessageSource application;
    private final Function<HttpServletRequest, Locale> locales;
    private final FormProblemPage page;

    /** @param application its messages of the same names come first */
    FormProblems(MessageSource application, Function<HttpServletRequest, Locale> locales, FormProblemPage page) {
        this.application = application;
        this.locales = locales;
        this.page = page;
    }

    private static MessageSource ownMessages() {
        ResourceBundleMessageSource messages = new ResourceBundleMessageSource();
        messages.setBasename("io.idempotence.spring.form.pages");
        messages.setBundleClassLoader(FormProblems.class.getClassLoader());
        messages.setDefaultEncoding(StandardCharsets.UTF_8.name());
        messages.setFallbackToSystemLocale(false);
        return messages;
    }

    void write(String code, int status, HttpServletRequest request, HttpServletResponse response) throws IOException {
        Locale locale = locales.apply(request);
        response.setStatus(status);
        response.setHeader("Cache-Control", "no-store");
        response.setLocale(locale);
        page.write(
                new FormProblem(
                        code,
                        status,
                        message(code + ".title", locale),
                        message(code + ".text", locale),
                        message("back", locale),
                        pathOfForm(request)),
                request,
                response);
    }

    private String message(String name, Locale locale) {
        String code = PREFIX + name;
        String text = application.getMessage(code, null, null, locale);
        // With spring.messages.use-code-as-default-message the application has a text for each code: the code.
        return text == null || text.equals(code) ? own.getMessage(code, null, locale) : text;
    }

    /** The path of the page that a form was submitted from, if it is one of this server. */
    private static @Nullable String pathOfForm(HttpServletRequest request) {
        String referer = request.getHeader("Referer");
        if (referer == null) {
            return null;
        }
        try {
            URI from = new URI(referer);
            String path = from.getRawPath();
            if (!request.getServerName().equalsIgnoreCase(from.getHost()) || path == null || !path.startsWith("/")) {
                return null;
            }
            // Two slashes would begin the name of another server.
            String local = "/" + path.replaceFirst("^/+", "");
            return from.getRawQuery() == null ? local : local + "?" + from.getRawQuery();
        } catch (URISyntaxException e) {
            return null;
        }
    }
}
