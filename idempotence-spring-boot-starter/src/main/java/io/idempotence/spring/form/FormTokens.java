package io.idempotence.spring.form;

import io.idempotence.IdempotenceId;
import io.idempotence.IdempotenceIdGenerator;
import io.idempotence.spring.internal.Sha256;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpSession;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.Principal;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.Base64;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.jspecify.annotations.Nullable;

/**
 * The one-time tokens of HTML forms. A token carries an idempotence ID, the time until which it is valid, and a signature (HMAC-SHA-256).
 * The secret is in the session in which the form was rendered. It is derived from the session's first ID, which only the browser has. The
 * signature covers the user's name, too: nobody else can use a token, and it ends with the session.
 *
 * <p>Pages get tokens from the request attribute {@value #TOKEN}, or the whole hidden field from {@value #FIELD}. Every evaluation of one of
 * the two makes a new token, so that each form of a page has its own. Thread-safe.
 */
public final class FormTokens {
    /** The name of the hidden field. */
    public static final String PARAMETER = "_idempotence";

    /** The request attribute whose text is a new token. */
    public static final String TOKEN = "idempotenceToken";

    /** The request attribute whose text is a hidden field with a new token. */
    public static final String FIELD = "idempotenceField";

    private static final String SECRET = FormTokens.class.getName() + ".secret";
    private static final String ACCEPTED = FormTokens.class.getName() + ".accepted";
    private static final Pattern FORM =
            Pattern.compile("([A-Za-z0-9-]{1,64})\\.([0-9a-z]{1,13})\\.([A-Za-z0-9_-]{43})");

    private final IdempotenceIdGenerator generator = IdempotenceIdGenerator.uuid();
    private final Duration lifetime;
    private final Clock clock;
    private final List<Predicate<HttpServletRequest>> left = new CopyOnWriteArrayList<>();

    FormTokens(Duration lifetime, Clock clock) {
        this.lifetime = lifetime;
        this.clock = clock;
    }

    /**
     * The ID of the token that a request was submitted with. The idempotence filter has it already. Other handlers that see to it that their
     * operation runs once ({@link #leaveToHandler}) call this.
     *
     * @param request any request
     * @return the ID; empty if the request is not a form, or came without a valid token
     */
    public static Optional<IdempotenceId> idOf(HttpServletRequest request) {
        return Optional.ofNullable((IdempotenceId) request.getAttribute(ACCEPTED));
    }

    /**
     * Lets some forms with a token run without an idempotence filter, because their handler sees to it that their operation runs once.
     * Others are refused.
     *
     * @param requests which ones
     */
    public void leaveToHandler(Predicate<HttpServletRequest> requests) {
        left.add(requests);
    }

    boolean isLeftToHandler(HttpServletRequest request) {
        return left.stream().anyMatch(some -> some.test(request));
    }

    /** Offers tokens to the pages that a request renders. Nothing is made, and no session is created, unless a page takes one. */
    void offer(HttpServletRequest request) {
        request.setAttribute(TOKEN, new TextOnDemand(() -> issue(request)));
        request.setAttribute(
                FIELD,
                new TextOnDemand(
                        () -> "<input type=\"hidden\" name=\"" + PARAMETER + "\" value=\"" + issue(request) + "\">"));
    }

    private String issue(HttpServletRequest request) {
        String claims = generator.generateId().value() + "."
                + Long.toString(clock.instant().plus(lifetime).getEpochSecond(), 36);
        return claims + "." + signature(secretOfNewForm(request), claims, request);
    }

    private String secretOfNewForm(HttpServletRequest request) {
        HttpSession session;
        try {
            session = request.getSession(true);
        } catch (IllegalStateException e) {
            throw new IllegalStateException(
                    "a form token needs a session, and the response is already on its way to the browser, or the application"
                            + " forbids sessions; create the session before the page is rendered, with request.getSession() in the"
                            + " controller",
                    e);
        }
        String known = (String) session.getAttribute(SECRET);
        if (known != null) {
            return known;
        }
        // Two requests that set it at the same time set the same text: Spring Session keeps only one of them.
        String made = Sha256.base64(SECRET + ":" + session.getId());
        session.setAttribute(SECRET, made);
        return made;
    }

    /** Whether any token was issued in the session of a request. */
    boolean hasIssued(HttpServletRequest request) {
        HttpSession session = request.getSession(false);
        return session != null && session.getAttribute(SECRET) != null;
    }

    /** What a submitted token is worth. */
    sealed interface Check {
        /** It is one of this session's and this user's, and in time. */
        record Accepted(IdempotenceId id) implements Check {}

        /** It was one, but its time is over. */
        record Expired() implements Check {}

        /** It is damaged or forged, or belongs to another session, or another user. */
        record Foreign() implements Check {}
    }

    /** Checks a submitted token. If it is accepted, {@link #idOf} returns its ID from now on. */
    Check check(HttpServletRequest request, String token) {
        Matcher parts = FORM.matcher(token);
        HttpSession session = request.getSession(false);
        String secret = session == null ? null : (String) session.getAttribute(SECRET);
        if (!parts.matches() || secret == null) {
            return new Check.Foreign();
        }
        String claims = parts.group(1) + "." + parts.group(2);
        String expected = signature(secret, claims, request);
        if (!MessageDigest.isEqual(
                expected.getBytes(StandardCharsets.US_ASCII), parts.group(3).getBytes(StandardCharsets.US_ASCII))) {
            return new Check.Foreign();
        }
        if (clock.instant().isAfter(Instant.ofEpochSecond(Long.parseLong(parts.group(2), 36)))) {
            return new Check.Expired();
        }
        IdempotenceId id = new IdempotenceId(parts.group(1));
        request.setAttribute(ACCEPTED, id);
        return new Check.Accepted(id);
    }

    /** The user is part of it: after a login, the ID would belong to another principal, and the form could run a second time. */
    private static String signature(String secret, String claims, HttpServletRequest request) {
        @Nullable Principal user = request.getUserPrincipal();
        String signed = claims + "." + (user == null ? "" : "+" + user.getName());
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(Base64.getDecoder().decode(secret), "HmacSHA256"));
            return Base64.getUrlEncoder()
                    .withoutPadding()
                    .encodeToString(mac.doFinal(signed.getBytes(StandardCharsets.UTF_8)));
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException("every JDK has HmacSHA256", e);
        }
    }

    /** A text that is made anew each time it is asked for. */
    private static final class TextOnDemand {
        private final Supplier<String> text;

        TextOnDemand(Supplier<String> text) {
            this.text = text;
        }

        @Override
        public String toString() {
            return text.get();
        }
    }
}
