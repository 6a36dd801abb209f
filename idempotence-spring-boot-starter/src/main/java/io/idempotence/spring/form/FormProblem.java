package io.idempotence.spring.form;

import org.jspecify.annotations.Nullable;

/**
 * The reason why a form was not processed, as its sender sees it.
 *
 * @param code {@code expired} or {@code not-valid} for a token, {@code not-protected} if no idempotence filter covers the form's path, otherwise the
 *     code of the refusal, such as {@code key-reused}
 * @param status the HTTP status
 * @param title what happened, in the sender's language
 * @param text what it means and what to do, in the sender's language
 * @param link the label of the link back, in the sender's language
 * @param back the path of the page with the form; null if the browser does not send it
 */
public record FormProblem(
        String code,
        int status,
        String title,
        String text,
        String link,
        @Nullable String back) {}
