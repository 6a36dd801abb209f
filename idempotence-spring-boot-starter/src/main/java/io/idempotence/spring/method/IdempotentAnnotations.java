package io.idempotence.spring.method;

import io.idempotence.Idempotent;
import java.lang.reflect.Method;
import org.jspecify.annotations.Nullable;
import org.springframework.core.annotation.AnnotationUtils;
import org.springframework.core.annotation.MergedAnnotation;
import org.springframework.core.annotation.MergedAnnotations;
import org.springframework.core.annotation.MergedAnnotations.SearchStrategy;

/** The {@code @Idempotent} of methods: their own, else that of their type; also of overridden methods, interfaces and meta-annotations. */
final class IdempotentAnnotations {
    private IdempotentAnnotations() {}

    /**
     * An annotation.
     *
     * @param onMethod whether it is on the method, not on its type
     * @param ofInterface whether it is declared by an interface, which may be that of a client
     */
    record Found(Idempotent annotation, boolean onMethod, boolean ofInterface) {}

    /** Whether a class may have such an annotation. */
    static boolean isCandidate(Class<?> type) {
        return !type.getName().startsWith("org.springframework.")
                && AnnotationUtils.isCandidateClass(type, Idempotent.class);
    }

    static @Nullable Found of(Method method, Class<?> type) {
        return of(method, of(type));
    }

    /** @param ofType the annotation of the method's type, or null */
    static @Nullable Found of(Method method, @Nullable Found ofType) {
        Found own = found(MergedAnnotations.from(method, SearchStrategy.TYPE_HIERARCHY), true);
        return own != null ? own : ofType;
    }

    static @Nullable Found of(Class<?> type) {
        return found(MergedAnnotations.from(type, SearchStrategy.TYPE_HIERARCHY), false);
    }

    private static @Nullable Found found(MergedAnnotations all, boolean onMethod) {
        MergedAnnotation<Idempotent> annotation = all.get(Idempotent.class);
        if (!annotation.isPresent()) {
            return null;
        }
        Class<?> source = annotation.getSource() instanceof Method method
                ? method.getDeclaringClass()
                : annotation.getSource() instanceof Class<?> declaring ? declaring : Object.class;
        return new Found(annotation.synthesize(), onMethod, source.isInterface());
    }
}
