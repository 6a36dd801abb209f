package io.idempotence.spring.actuate;

import jakarta.servlet.http.HttpServletRequest;
import java.util.Optional;
import org.springframework.security.access.AccessDeniedException;
import org.springframework.security.web.csrf.CsrfToken;
import org.springframework.util.ClassUtils;

/** The access check of the console through Spring Security, whose classes need not be there. */
final class ConsoleSecurity {
    private static final boolean IS_PRESENT = ClassUtils.isPresent(
            "org.springframework.security.web.csrf.CsrfToken", ConsoleSecurity.class.getClassLoader());

    private final String role;

    ConsoleSecurity(String role) {
        this.role = role;
    }

    /** Throws unless the user has the role. */
    void check(HttpServletRequest request) {
        if (!request.isUserInRole(role)) {
            Classes.deny(role);
        }
    }

    record HiddenField(String name, String value) {}

    /** The CSRF token of the application, if it uses one. */
    static Optional<HiddenField> csrf(HttpServletRequest request) {
        return IS_PRESENT ? Classes.csrf(request) : Optional.empty();
    }

    /** Loaded only if its classes are there. */
    private static final class Classes {
        static void deny(String role) {
            throw new AccessDeniedException("the idempotence console needs the role " + role);
        }

        static Optional<HiddenField> csrf(HttpServletRequest request) {
            return request.getAttribute(CsrfToken.class.getName()) instanceof CsrfToken token
                    ? Optional.of(new HiddenField(token.getParameterName(), token.getToken()))
                    : Optional.empty();
        }
    }
}
